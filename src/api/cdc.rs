//! `TiCDC` calls, v1 and v2: one function each, from an address to a reading.

mod wire;

use serde_json::{Value, json};

use super::error::{build, cdc_failure, malformed};
use super::http::{Answer, Deadline, Http, Method};
use super::json;
use crate::cluster::{
    Address, Architecture, CaptureEntry, CaptureId, ChangefeedError, ChangefeedId, ChangefeedRow, ChangefeedState,
    ClusterId, FailureKind, LivenessReading, NodeStatus, Reading, TableId, Tso, Version,
};

/// Which version of the open API a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// `/api/v1`.
    V1,
    /// `/api/v2`.
    V2,
}

impl Api {
    const fn prefix(self) -> &'static str {
        match self {
            Self::V1 => "/api/v1",
            Self::V2 => "/api/v2",
        }
    }
}

/// A detail of a changefeed: its row, and its tables by capture where the answer carries them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangefeedDetail {
    /// What the list would say.
    pub row: ChangefeedRow,
    /// Tables by capture; `None` unless the state is `normal` (contract section 1.9).
    pub tables: Option<crate::cluster::reading::Placement>,
}

/// Which architecture a node runs, by one of the two signals; `None` if the answer does not tell.
fn architecture_of_root_status(body: &Value) -> Option<Architecture> {
    body.as_object().map(|object| {
        if object.contains_key("liveness") && object.contains_key("cluster_id") {
            Architecture::New
        } else {
            Architecture::Classic
        }
    })
}

fn success(answer: Answer, status: u16) -> Reading<Answer> {
    if answer.status == status {
        Ok(answer)
    } else if (200..300).contains(&answer.status) {
        Err(malformed(&answer, &format!("expected {status}, got {}", answer.status)))
    } else {
        Err(cdc_failure(&answer))
    }
}

fn parse<T>(answer: &Answer, read: impl FnOnce(Value) -> Result<T, String>) -> Reading<T> {
    json::value(&answer.body).and_then(read).map_err(|why| malformed(answer, &why))
}

async fn get(http: &Http, at: &Address, path: &str, deadline: Deadline) -> Reading<Answer> {
    success(http.send(Method::Get, at, path, None, deadline).await?, 200)
}

/// The architecture of a node, by two signals that must agree: the shape of root `/status`, and `newarch` in `/config`
/// (contract section 0).
pub async fn architecture(http: &Http, at: &Address) -> Reading<Architecture> {
    let root = get(http, at, "/status", Deadline::Other).await?;
    let by_status = parse(&root, |value| architecture_of_root_status(&value).ok_or_else(|| "no object".to_owned()))?;
    let config = get(http, at, "/config", Deadline::Other).await?;
    let is_new = parse(&config, |value| Ok(value.get("newarch").and_then(Value::as_bool).unwrap_or(false)))?;
    match (by_status, is_new) {
        (Architecture::Classic, false) => Ok(Architecture::Classic),
        (Architecture::New, true) => Ok(Architecture::New),
        _ => Err(build(&config, FailureKind::Unexpected, "", "its /status and /config disagree on its architecture")),
    }
}

/// A node's own status. `architecture` says what its liveness number means.
pub async fn status(http: &Http, at: &Address, api: Api, architecture: Architecture) -> Reading<NodeStatus> {
    let path = format!("{}/status", api.prefix());
    let answer = get(http, at, &path, Deadline::Other).await?;
    parse(&answer, |value| read_status(value, architecture))
}

fn read_status(value: Value, architecture: Architecture) -> Result<NodeStatus, String> {
    let wire: wire::Status = json::typed(value)?;
    let raw = wire.liveness.as_ref().and_then(Value::as_i64);
    Ok(NodeStatus {
        id: (!wire.id.is_empty()).then(|| CaptureId::new(&wire.id)),
        version: Version::parse(&wire.version).ok(),
        version_text: wire.version.into(),
        git_hash: wire.git_hash.into(),
        cluster_id: wire.cluster_id.filter(|id| !id.is_empty()).map(ClusterId::new),
        pid: wire.pid,
        is_owner: wire.is_owner,
        liveness: LivenessReading::new(raw, architecture),
        architecture,
    })
}

/// Health, by the owner's word: v1 answers with an empty body, v2 with `{}`.
pub async fn health(http: &Http, at: &Address, api: Api) -> Reading<()> {
    get(http, at, &format!("{}/health", api.prefix()), Deadline::Drain).await.map(|_| ())
}

/// The owner's list of captures, by address and id: the order on the wire is random.
pub async fn captures(http: &Http, at: &Address, api: Api) -> Reading<Vec<CaptureEntry>> {
    let answer = get(http, at, &format!("{}/captures", api.prefix()), Deadline::Drain).await?;
    parse(&answer, |value| {
        let mut entries = Vec::new();
        for item in json::list(value)? {
            let wire: wire::Capture = json::typed(item)?;
            entries.push(CaptureEntry {
                id: CaptureId::new(&wire.id),
                address: Address::parse(&wire.address).map_err(|error| error.to_string())?,
                cluster_id: wire.cluster_id.filter(|id| !id.is_empty()).map(ClusterId::new),
                is_owner: wire.is_owner,
            });
        }
        entries.sort_by(|a, b| (&a.address, &a.id).cmp(&(&b.address, &b.id)));
        Ok(entries)
    })
}

/// The changefeeds, hidden ones included. v1 lists every namespace, v2 only `namespace` (contract section 1.8).
pub async fn changefeeds(http: &Http, at: &Address, api: Api, namespace: Option<&str>) -> Reading<Vec<ChangefeedRow>> {
    let scope = namespace.map_or_else(String::new, |name| format!("&namespace={name}"));
    let path = format!("{}/changefeeds?state=all{scope}", api.prefix());
    let answer = get(http, at, &path, Deadline::Drain).await?;
    parse(&answer, |value| {
        let mut rows = json::list(value)?
            .into_iter()
            .map(|item| json::typed(item).map(read_row))
            .collect::<Result<Vec<_>, _>>()?;
        rows.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(rows)
    })
}

fn read_row(wire: wire::Changefeed) -> ChangefeedRow {
    ChangefeedRow {
        id: ChangefeedId::new(wire.namespace.as_deref().unwrap_or("default"), &wire.id),
        state: ChangefeedState::parse(&wire.state),
        checkpoint: Tso::new(wire.checkpoint_tso),
        error: wire
            .error
            .filter(|error| !error.code.is_empty() || !error.message.is_empty())
            .map(|error| ChangefeedError { code: error.code.into(), message: error.message.into() }),
    }
}

/// A changefeed's detail, with its tables by capture while it is `normal`.
pub async fn changefeed(http: &Http, at: &Address, api: Api, id: &ChangefeedId) -> Reading<ChangefeedDetail> {
    let scope = if api == Api::V2 { format!("?namespace={}", id.namespace) } else { String::new() };
    let path = format!("{}/changefeeds/{}{scope}", api.prefix(), id.name);
    let answer = get(http, at, &path, Deadline::Drain).await?;
    parse(&answer, |value| {
        let mut wire: wire::Changefeed = json::typed(value)?;
        let tables = wire.task_status.take().map(|tasks| {
            let ids = |task: wire::TaskStatus| {
                let ids = task.table_ids.unwrap_or_default().into_iter().map(TableId).collect();
                (CaptureId::new(&task.capture_id), ids)
            };
            tasks.into_iter().map(ids).collect()
        });
        Ok(ChangefeedDetail { row: read_row(wire), tables })
    })
}

/// The processors list: which changefeeds have one on which capture.
pub async fn processors(http: &Http, at: &Address, api: Api) -> Reading<Vec<(ChangefeedId, CaptureId)>> {
    let answer = get(http, at, &format!("{}/processors", api.prefix()), Deadline::Drain).await?;
    parse(&answer, |value| {
        let mut found = Vec::new();
        for item in json::list(value)? {
            let wire: wire::Processor = json::typed(item)?;
            let namespace = wire.namespace.as_deref().unwrap_or("default");
            found.push((ChangefeedId::new(namespace, &wire.changefeed_id), CaptureId::new(&wire.capture_id)));
        }
        found.sort();
        Ok(found)
    })
}

/// The tables of a changefeed on a capture. For a changefeed that does not run v1 answers 200 with *two* documents, the
/// second of which is the error (recorded cdc-classic-more 08): that is the error. A null list is no list: the capture
/// has no entry for the changefeed.
pub async fn processor(
    http: &Http,
    at: &Address,
    api: Api,
    feed: &ChangefeedId,
    capture: &CaptureId,
) -> Reading<Vec<TableId>> {
    let scope = if api == Api::V2 { format!("?namespace={}", feed.namespace) } else { String::new() };
    let path = format!("{}/processors/{}/{capture}{scope}", api.prefix(), feed.name);
    let answer = get(http, at, &path, Deadline::Drain).await?;
    let mut values = json::values(&answer.body).map_err(|why| malformed(&answer, &why))?;
    if values.len() > 1 {
        return Err(cdc_failure(&answer));
    }
    let wire: wire::ProcessorDetail = values
        .pop()
        .ok_or_else(|| "no value".to_owned())
        .and_then(json::typed)
        .map_err(|why| malformed(&answer, &why))?;
    let ids = wire.table_ids.ok_or_else(|| malformed(&answer, "the capture has no entry for this changefeed"))?;
    let mut ids: Vec<_> = ids.into_iter().map(TableId).collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Asks for a drain, which is also the poll of its progress. 202 is the only success (contract section 1.6).
pub async fn drain(http: &Http, at: &Address, api: Api, capture: &CaptureId) -> Reading<u64> {
    let answer = match api {
        Api::V1 => {
            let body = json!({ "capture_id": capture });
            http.send(Method::Put, at, "/api/v1/captures/drain", Some(&body), Deadline::Drain).await?
        }
        Api::V2 => {
            let path = format!("/api/v2/captures/{capture}/drain");
            http.send(Method::Post, at, &path, None, Deadline::Drain).await?
        }
    };
    let answer = success(answer, 202)?;
    parse(&answer, |value| json::typed::<wire::DrainCount>(value).map(|count| count.current_table_count))
}

/// Asks the owner to resign: v1 answers 202 with an empty body, v2 200 `{}`. Either says it was heard, not that it
/// happened (contract section 4.1).
pub async fn resign(http: &Http, at: &Address, api: Api) -> Reading<()> {
    let path = format!("{}/owner/resign", api.prefix());
    let answer = http.send(Method::Post, at, &path, None, Deadline::Drain).await?;
    success(answer, if api == Api::V1 { 202 } else { 200 }).map(|_| ())
}

/// Pauses a changefeed (v2). Success says it was heard (contract section 1.12).
pub async fn pause(http: &Http, at: &Address, id: &ChangefeedId) -> Reading<()> {
    let path = format!("/api/v2/changefeeds/{}/pause?namespace={}", id.name, id.namespace);
    success(http.send(Method::Post, at, &path, None, Deadline::Drain).await?, 200).map(|_| ())
}

/// Resumes a changefeed (v2), which needs a JSON body.
pub async fn resume(http: &Http, at: &Address, id: &ChangefeedId) -> Reading<()> {
    let path = format!("/api/v2/changefeeds/{}/resume?namespace={}", id.name, id.namespace);
    success(http.send(Method::Post, at, &path, Some(&json!({})), Deadline::Drain).await?, 200).map(|_| ())
}

/// The cluster's own clock.
pub async fn tso(http: &Http, at: &Address) -> Reading<Tso> {
    let answer = http.send(Method::Post, at, "/api/v2/tso", Some(&json!({})), Deadline::Other).await?;
    let answer = success(answer, 200)?;
    parse(&answer, |value| {
        let wire: wire::Tso = json::typed(value)?;
        let whole = wire.timestamp.checked_mul(1 << 18).and_then(|physical| physical.checked_add(wire.logic_time));
        whole.and_then(Tso::new).ok_or_else(|| "a clock that reads no time".to_owned())
    })
}
