//! The clients read every recorded answer of a real server into the right outcome.
//!
//! What is expected stands in `expected.rs`, written by reading the recordings and not by running the code. A
//! recording that is not in the table fails the test, and so does a line of the table without a recording.

mod expected;
mod expected_new;
mod new_architecture;
mod sequences;

use std::collections::{BTreeMap, BTreeSet};
use std::iter::chain;

use expected::{EXCHANGES, Expect, LEFT_OUT};
use tiroll::api::cdc::{ApiVersion, Cdc};
use tiroll::api::error::{cdc_failure, tidb_failure};
use tiroll::api::http::{Answer, Call, Http, Kind, Method, Options};
use tiroll::api::tidb::Tidb;
use tiroll::cluster::{
    Address, Architecture, CaptureId, ChangefeedId, Failure, LivenessReading, Reading, TableId, Tso,
};

use crate::support::recording::{self, Exchange, FOLDERS, Recording, Request, Response};
use crate::support::replay::Replay;

fn http() -> Http {
    Http::new(&Options::default()).unwrap()
}

fn exchanges() -> impl Iterator<Item = &'static (&'static str, &'static str, Expect)> {
    chain(EXCHANGES, expected_new::EXCHANGES)
}

/// The architecture of the captures in a folder.
fn architecture(folder: &str) -> Architecture {
    if folder.starts_with("cdc-new") { Architecture::New } else { Architecture::Classic }
}

#[test]
fn every_recording_is_accounted_for() {
    let mut found = BTreeSet::new();
    for folder in FOLDERS {
        found.extend(recording::files(folder).into_iter().map(|file| (folder, file)));
    }
    let single = exchanges().map(|(folder, file, _)| (*folder, (*file).to_owned()));
    let sequences =
        chain(sequences::SEQUENCES, new_architecture::SEQUENCES).map(|(folder, file, _)| (*folder, (*file).to_owned()));
    let listed: Vec<_> = single.chain(sequences).collect();
    let expected: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(listed.len(), expected.len(), "a recording is listed twice");
    let unlisted: Vec<_> = found.difference(&expected).collect();
    let missing: Vec<_> = expected.difference(&found).collect();
    assert!(unlisted.is_empty() && missing.is_empty(), "not in the table: {unlisted:?}; not there: {missing:?}");
    for (folder, file, reason) in LEFT_OUT {
        assert!(!found.contains(&(*folder, (*file).to_owned())), "{folder}/{file} is here, though left out: {reason}");
    }
}

#[tokio::test]
async fn every_exchange_is_read_into_the_right_outcome() {
    for (folder, file, expect) in exchanges() {
        let Recording::Exchange(exchange) = recording::load(folder, file) else {
            panic!("{folder}/{file} is a sequence");
        };
        let line = format!("{} {}", exchange.request.method, exchange.request.bare_path());
        let body = exchange.request.body.clone();
        let content_type = exchange.response.content_type().map(str::to_owned);
        let case = Case { name: format!("{folder}/{file}"), request: exchange.request.clone(), content_type };
        let replay = Replay::serve(with_companions(folder, *exchange)).await;
        case.check(&replay.address, expect).await;
        let asked = replay.asked();
        let first = asked.iter().find(|asked| asked.line == line);
        let first = first.unwrap_or_else(|| panic!("{}: `{line}` was never asked, but {asked:?}", case.name));
        if let (Expect::Drained(_), Some(body)) = (expect, body) {
            assert_eq!(serde_json::from_str::<serde_json::Value>(&first.body).unwrap(), body, "{}", case.name);
        }
    }
}

/// A node that is asked for its status is asked for its architecture too: by the root status, which was recorded for
/// the owner and has the same keys everywhere (five in the classic architecture, all in the new one), and by its
/// configuration, which was not recorded.
fn with_companions(folder: &str, exchange: Exchange) -> Vec<Exchange> {
    let path = exchange.request.bare_path().to_owned();
    let companion = |path: &str, status, raw: String| Exchange {
        request: Request { method: "GET".into(), addr: exchange.request.addr.clone(), path: path.into(), body: None },
        response: Response { status, headers: [("content-length".into(), raw.len().to_string())].into(), raw },
    };
    let config = match architecture(folder) {
        Architecture::Classic => companion("/config", 404, "404 page not found".into()),
        Architecture::New => companion("/config", 200, r#"{"newarch":true}"#.into()),
    };
    if path == "/status" && folder != "tidb" {
        return vec![recording::exchange(folder, "01-v1-status-owner"), exchange, config];
    }
    if !path.ends_with("/status") || path.contains("changefeeds") || folder == "tidb" {
        return vec![exchange];
    }
    let mut root: serde_json::Map<_, _> = serde_json::from_str(&exchange.response.raw).unwrap();
    if architecture(folder) == Architecture::Classic {
        root.retain(|key, _| key != "cluster_id" && key != "liveness");
    }
    let root = companion("/status", 200, serde_json::to_string(&root).unwrap());
    vec![exchange, root, config]
}

struct Case {
    name: String,
    request: Request,
    content_type: Option<String>,
}

impl Case {
    /// Asks what was asked when it was recorded, through the client that asks it.
    async fn check(&self, at: &Address, expect: &Expect) {
        match expect {
            Expect::NotAsked(status) => {
                let answer = self.raw(at).await;
                assert_eq!(answer.status, *status, "{}", self.name);
                assert_eq!(Some(&*answer.content_type), self.content_type.as_deref(), "{}", self.name);
            }
            Expect::Fails(kind, code, message) => {
                let failure = self.failure(at).await;
                assert_eq!(failure.kind, *kind, "{}: {failure:?}", self.name);
                assert_eq!(failure.code.as_deref(), *code, "{}", self.name);
                assert_eq!(&*failure.message, *message, "{}", self.name);
                assert!(!failure.raw.is_empty(), "{}: the body is kept for the screen", self.name);
            }
            _ if self.name.starts_with("tidb/") => self.check_tidb(at, expect).await,
            _ => self.check_cdc(at, expect).await,
        }
    }

    async fn check_cdc(&self, at: &Address, expect: &Expect) {
        let cdc = Cdc::new(http());
        let (api, parts) = self.parts();
        let name = &self.name;
        match (expect, &parts[..]) {
            (Expect::Status { version, id, is_owner, liveness }, _) => {
                let api = if parts == ["status"] && self.request.path == "/status" { ApiVersion::V1 } else { api };
                let status = cdc.status(at, api).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
                assert_eq!(status.version.as_ref().map(tiroll::cluster::Version::as_str), Some(*version), "{name}");
                assert_eq!(status.id, Some(CaptureId::new(id)), "{name}");
                assert_eq!(status.cluster_id.unwrap().as_str(), "default", "{name}");
                assert_eq!((status.is_owner, status.architecture), (*is_owner, architecture(name)), "{name}");
                assert_eq!(status.liveness, LivenessReading::new(Some(*liveness), architecture(name)), "{name}");
                assert!(status.liveness.meaning.is_some() && status.pid.is_some(), "{name}");
            }
            (Expect::Healthy, ["health"]) => assert_eq!(cdc.health(at, api).await, Ok(()), "{name}"),
            (Expect::Captures { owner, ids }, ["captures"]) => {
                let list = cdc.captures(at, api).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
                assert_eq!(list.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), *ids, "{name}");
                let owners = list.iter().filter(|entry| entry.is_owner).map(|entry| entry.id.as_str());
                assert_eq!(owners.collect::<Vec<_>>(), [*owner], "{name}");
                // Recorded with each of the three at its own port, in this order; the one alone was asked itself.
                let asked = Address::parse(&self.request.addr).unwrap();
                let first = if ids.len() == 1 { asked.port() } else { asked.port() / 100 * 100 };
                let listening = (first..).take(ids.len()).map(|port| Address::new("127.0.0.1", port));
                let addresses: Vec<_> = list.iter().map(|entry| entry.address.clone()).collect();
                assert_eq!(addresses, listening.collect::<Vec<_>>(), "{name}");
                let clusters = list.iter().map(|entry| entry.cluster_id.as_ref().unwrap().as_str());
                assert!(clusters.into_iter().all(|cluster| cluster == "default"), "{name}");
            }
            (Expect::Changefeeds(expected), ["changefeeds"]) => {
                let rows = cdc.changefeeds(at, api, "default").await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
                let rows: Vec<_> = rows
                    .iter()
                    .map(|row| (&*row.id.name, row.state.word(), row.checkpoint.map_or(0, Tso::get), &row.error))
                    .collect();
                let expected: Vec<_> =
                    expected.iter().map(|(id, state, checkpoint)| (*id, *state, *checkpoint, &None)).collect();
                assert_eq!(rows, expected, "{name}");
            }
            (Expect::Detail { state, checkpoint, tables }, ["changefeeds", id, rest @ ..]) => {
                let id = ChangefeedId::new("default", id);
                let detail = match rest {
                    ["status"] => cdc.changefeed_status(at, &id).await,
                    _ => cdc.changefeed(at, api, &id).await,
                };
                let detail = detail.unwrap_or_else(|e| panic!("{name}: {e:?}"));
                assert_eq!(
                    (detail.state.word(), detail.checkpoint.map(Tso::get)),
                    (*state, Some(*checkpoint)),
                    "{name}"
                );
                let counts = detail.placement.map(|placement| {
                    placement.iter().map(|(id, tables)| (id.to_string(), tables.len())).collect::<Vec<_>>()
                });
                let expected =
                    tables.map(|tables| tables.iter().map(|(id, n)| ((*id).to_owned(), *n)).collect::<Vec<_>>());
                assert_eq!(counts, expected, "{name}");
            }
            (Expect::Processors { changefeeds, captures }, ["processors"]) => {
                let processors = cdc.processors(at, api).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
                let captures: BTreeSet<_> = captures.iter().map(CaptureId::new).collect();
                let expected: BTreeMap<_, _> =
                    changefeeds.iter().map(|id| (ChangefeedId::new("default", id), captures.clone())).collect();
                assert_eq!(*processors, expected, "{name}");
            }
            (Expect::Tables(expected), ["processors", id, capture]) => {
                let id = ChangefeedId::new("default", id);
                let tables = cdc.processor_tables(at, api, &id, &CaptureId::new(capture)).await;
                let tables = tables.unwrap_or_else(|e| panic!("{name}: {e:?}"));
                let ends = tables.first().zip(tables.last()).map(|(first, last)| (tables.len(), first.0, last.0));
                assert_eq!(ends, *expected, "{name}");
            }
            (Expect::Placed(expected), ["changefeeds", id, "tables"]) => {
                let placement = cdc.tables(at, &ChangefeedId::new("default", id)).await;
                let placement = placement.unwrap_or_else(|e| panic!("{name}: {e:?}"));
                let ends = |tables: &[TableId]| Some((tables.len(), tables.first()?.0, tables.last()?.0));
                let placed: Vec<_> = placement.iter().map(|(node, tables)| (node.as_str(), ends(tables))).collect();
                assert_eq!(placed, *expected, "{name}");
            }
            (Expect::Drained(count), _) => assert_eq!(self.drain(&cdc, at).await, Ok(*count), "{name}"),
            (Expect::Resigned, ["owner", "resign"]) => assert_eq!(cdc.resign(at, api).await, Ok(()), "{name}"),
            _ => panic!("{name}: nothing asks {} and expects {expect:?}", self.request.path),
        }
    }

    async fn check_tidb(&self, at: &Address, expect: &Expect) {
        let tidb = Tidb::new(http());
        let name = &self.name;
        match expect {
            Expect::TidbStatus { version, connections } => {
                let status = tidb.status(at).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
                assert_eq!((status.version.as_str(), status.connections), (*version, *connections), "{name}");
            }
            Expect::TidbInfo { ddl_id, version, start } => {
                let info = tidb.info(at).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
                assert_eq!((&*info.ddl_id, info.version.as_str()), (*ddl_id, *version), "{name}");
                assert_eq!((info.start_timestamp, info.is_ddl_owner), (*start, Some(true)), "{name}");
                assert_eq!(info.sql_address.to_string(), "127.0.0.1:4000", "{name}");
                assert_eq!(info.status_address.to_string(), "127.0.0.1:10080", "{name}");
            }
            Expect::TidbAll { owner, servers } => {
                let all = tidb.info_all(at).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
                assert_eq!(&*all.owner_id, *owner, "{name}");
                let seen: Vec<_> =
                    all.servers.iter().map(|s| (s.status_address.to_string(), s.version.as_str())).collect();
                let expected: Vec<_> = servers.iter().map(|(a, v)| ((*a).to_owned(), *v)).collect();
                assert_eq!(seen, expected, "{name}");
            }
            Expect::State(state) => assert_eq!(tidb.upgrade_show(at).await.as_ref(), Ok(state), "{name}"),
            Expect::Started(answer) => assert_eq!(tidb.upgrade_start(at).await.as_ref(), Ok(answer), "{name}"),
            Expect::Finished(answer) => assert_eq!(tidb.upgrade_finish(at).await.as_ref(), Ok(answer), "{name}"),
            Expect::Databases(names) => {
                let databases = tidb.databases(at).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
                assert_eq!(databases, *names, "{name}");
            }
            Expect::Names { count, one } => {
                let tables = tidb.tables_of(at, "lab").await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
                assert_eq!(tables.len(), *count, "{name}");
                assert_eq!(tables[&TableId(one.0)], one.1, "{name}");
            }
            Expect::Name(id, full) => {
                assert_eq!(tidb.table(at, TableId(*id)).await.as_deref(), Ok(*full), "{name}");
            }
            _ => panic!("{name}: TiDB does not answer {expect:?}"),
        }
    }

    /// The failure that the client gets for this question; where no client asks it, the failure in the answer.
    async fn failure(&self, at: &Address) -> Failure {
        let cdc = Cdc::new(http());
        let tidb = Tidb::new(http());
        let (api, parts) = self.parts();
        let method = self.request.method.as_str();
        let failed = |name: &str| panic!("{name} is no failure");
        let outcome: Reading<()> = match (method, &parts[..]) {
            ("GET", ["changefeeds", id]) => cdc.changefeed(at, api, &ChangefeedId::new("default", id)).await.map(drop),
            ("GET", ["changefeeds", id, "tables"]) => cdc.tables(at, &ChangefeedId::new("default", id)).await.map(drop),
            ("GET", ["processors", id, capture]) => {
                let id = ChangefeedId::new("default", id);
                cdc.processor_tables(at, api, &id, &CaptureId::new(capture)).await.map(drop)
            }
            ("PUT", ["captures", "drain"]) if api == ApiVersion::V1 => self.drain(&cdc, at).await.map(drop),
            ("POST", ["captures", _, "drain"]) => self.drain(&cdc, at).await.map(drop),
            ("GET", ["db-table", id]) => tidb.table(at, TableId(id.parse().unwrap())).await.map(drop),
            ("GET", ["schema", database]) => tidb.tables_of(at, database).await.map(drop),
            _ => {
                let answer = self.raw(at).await;
                Err(if self.name.starts_with("tidb/") { tidb_failure(&answer) } else { cdc_failure(&answer) })
            }
        };
        outcome.err().unwrap_or_else(|| failed(&self.name))
    }

    async fn drain(&self, cdc: &Cdc, at: &Address) -> Reading<u64> {
        let (api, parts) = self.parts();
        let capture = match &parts[..] {
            ["captures", id, "drain"] => (*id).to_owned(),
            _ => self.request.body.as_ref().and_then(|b| b["capture_id"].as_str()).unwrap_or_default().to_owned(),
        };
        cdc.drain(at, api, &CaptureId::new(capture)).await
    }

    /// The question as it was, past the clients.
    async fn raw(&self, at: &Address) -> Answer {
        let method = match self.request.method.as_str() {
            "GET" => Method::Get,
            "PUT" => Method::Put,
            _ => Method::Post,
        };
        http().send(at, &Call::fixed(method, Kind::Tables, self.request.bare_path())).await.unwrap()
    }

    /// The version of the API and the rest of the path, part by part.
    fn parts(&self) -> (ApiVersion, Vec<&str>) {
        let path = self.request.bare_path().trim_start_matches('/');
        let (api, rest) = match path.strip_prefix("api/v2/") {
            Some(rest) => (ApiVersion::V2, rest),
            None => (ApiVersion::V1, path.strip_prefix("api/v1/").unwrap_or(path)),
        };
        (api, rest.split('/').collect())
    }
}
