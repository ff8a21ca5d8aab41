//! What each recording says, written by reading it.

use tiroll::cluster::{FailureKind, FinishAnswer, StartAnswer, UpgradeState};

/// How many tables, and the smallest and largest id; `None` where there are none.
type Ends = Option<(usize, i64, i64)>;

/// The outcome that a client must read out of a recorded answer.
#[derive(Debug)]
pub(super) enum Expect {
    /// A capture's own status in the cluster `default`, with its liveness as a number.
    Status { version: &'static str, id: &'static str, is_owner: bool, liveness: i64 },
    /// The health call succeeds.
    Healthy,
    /// The captures in the order of their addresses, and the only owner.
    Captures { owner: &'static str, ids: &'static [&'static str] },
    /// Name, state and checkpoint of each changefeed in namespace `default`, none with an error.
    Changefeeds(&'static [(&'static str, &'static str, u64)]),
    /// State, checkpoint, and the number of tables at each capture in the order of ids.
    Detail { state: &'static str, checkpoint: u64, tables: Option<&'static [(&'static str, usize)]> },
    /// One processor for each changefeed and each capture.
    Processors { changefeeds: &'static [&'static str], captures: &'static [&'static str] },
    /// How many tables, and the smallest and largest id; `None` is an empty list.
    Tables(Ends),
    /// The tables by the maintainer, at each node in the order of ids: how many, and the smallest and largest id.
    Placed(&'static [(&'static str, Ends)]),
    /// A drain was accepted with this count.
    Drained(u64),
    /// A resign was heard.
    Resigned,
    /// A `TiDB` in service.
    TidbStatus { version: &'static str, connections: i64 },
    /// The DDL owner by its own word.
    TidbInfo { ddl_id: &'static str, version: &'static str, start: i64 },
    /// DDL owner, and the servers by status address.
    TidbAll { owner: &'static str, servers: &'static [(&'static str, &'static str)] },
    /// The state of the `TiDB` cluster.
    State(UpgradeState),
    /// What `/upgrade/start` said.
    Started(StartAnswer),
    /// What `/upgrade/finish` said.
    Finished(FinishAnswer),
    /// The databases that are not the system's.
    Databases(&'static [&'static str]),
    /// How many tables a database has, and one of them.
    Names { count: usize, one: (i64, &'static str) },
    /// The name of one table.
    Name(i64, &'static str),
    /// A failure: its kind, the server's code, and its message without the code.
    Fails(FailureKind, Option<&'static str>, &'static str),
    /// A call that this program never makes: the http layer passes the answer on with this status.
    NotAsked(u16),
}

use Expect::{
    Captures, Changefeeds, Databases, Detail, Drained, Fails, Finished, Healthy, Name, Names, NotAsked, Processors,
    Resigned, Started, State, Status, Tables, TidbAll, TidbInfo, TidbStatus,
};

/// The recordings that are not here, and why.
#[rustfmt::skip]
pub(super) const LEFT_OUT: &[(&str, &str, &str)] = &[
    ("cdc-classic", "32-v2-changefeed-synced", "`synced` is not asked"),
    ("cdc-classic", "36-metrics-head", "metrics are not asked"),
    ("cdc-classic", "37-etcd-keys", "a dump of etcd"),
    ("cdc-classic", "69-etcd-after-drain", "a dump of etcd"),
    ("cdc-classic", "90-etcd-after-kill9", "a dump of etcd"),
    ("cdc-v7.5", "32-v2-changefeed-synced", "`synced` is not asked"),
    ("cdc-v7.5", "36-metrics-head", "metrics are not asked"),
    ("cdc-v7.5", "37-etcd-keys", "a dump of etcd"),
    ("tidb", "16-ddl-during-upgrading", "a transcript of SQL"),
    ("tidb", "17-etcd-during-upgrading", "a dump of etcd"),
    ("tidb", "19-ddl-queued-then-finish", "a transcript of SQL"),
    ("tidb", "22-ddl-jobs-after-finish", "a transcript of SQL"),
    ("tidb", "86-ddl-history", "`/ddl/history` is not asked"),
];

// The three captures of v8.5.3 by their ports 8300, 8301 and 8302, and those of v7.5.7.
const C0: &str = "abeadf4f-7995-43c6-9372-51d69d484aff";
const C1: &str = "c66102a2-9deb-4c8b-b5c9-911ef1d80392";
const C2: &str = "b1064984-18e3-4767-8cc4-c3c0150abe01";
const ALONE: &str = "67808e7f-7b1e-40fb-a704-74d80229f325";
const OLD0: &str = "bbfeba09-d62e-42ae-b017-63c53ecfc088";
const OLD1: &str = "a5b47ffb-4275-4166-aa6c-012d1f4d0a3d";
const OLD2: &str = "02a25b30-ce96-4fdd-96c8-09e6dff64079";

const OWNER: Expect = Status { version: "v8.5.3", id: C0, is_owner: true, liveness: 0 };
const ALIVE: Expect = Status { version: "v8.5.3", id: C1, is_owner: false, liveness: 0 };
const STOPPING: Expect = Status { version: "v8.5.3", id: C1, is_owner: false, liveness: 1 };
const OLD_OWNER: Expect = Status { version: "v7.5.7", id: OLD0, is_owner: true, liveness: 0 };
const OLD_ALIVE: Expect = Status { version: "v7.5.7", id: OLD1, is_owner: false, liveness: 0 };
const OLD_STOPPING: Expect = Status { version: "v7.5.7", id: OLD1, is_owner: false, liveness: 1 };
const THREE: Expect = Captures { owner: C0, ids: &[C0, C1, C2] };
const OLD_THREE: Expect = Captures { owner: OLD0, ids: &[OLD0, OLD1, OLD2] };
// In the order of ids.
const SIX: Expect = Processors { changefeeds: &["cf-a", "cf-b"], captures: &[C0, C2, C1] };
const OLD_SIX: Expect = Processors { changefeeds: &["cf-a", "cf-b"], captures: &[OLD2, OLD1, OLD0] };
const ONE_STOPPED: Expect = Processors {
    changefeeds: &["cf-a"],
    captures: &[
        "5a6af39c-d6e7-4c80-a20c-270b85890ae4",
        "c644195c-0174-4cd1-9abc-348de4a55999",
        "cf778333-d60a-446b-82d5-3c72ea0a4b3b",
    ],
};
const PLACED: Option<&[(&str, usize)]> = Some(&[(C0, 41), (C2, 40), (C1, 41)]);
const OLD_PLACED: Option<&[(&str, usize)]> = Some(&[(OLD2, 40), (OLD1, 40), (OLD0, 40)]);

pub(super) const NO_PAGE: Expect = Fails(FailureKind::NoRoute, None, "404 page not found");
const NO_CHANGEFEED: Expect =
    Fails(FailureKind::NoSuchChangefeed, Some("CDC:ErrChangeFeedNotExists"), "changefeed not exists, default/nope");
pub(super) const IS_OWNER: Expect =
    Fails(FailureKind::CannotDrainOwner, SCHEDULER, "scheduler request failed, cannot drain the owner");
const IS_ALONE: Expect =
    Fails(FailureKind::OnlyOneCapture, SCHEDULER, "scheduler request failed, only one capture alive");
const SCHEDULER: Option<&str> = Some("CDC:ErrSchedulerRequestFailed");

/// No such capture, with the words the server found.
pub(super) const fn no_capture(message: &'static str) -> Expect {
    Fails(FailureKind::NoSuchCapture, Some("CDC:ErrCaptureNotExist"), message)
}

/// The request was refused, with the words the server found.
pub(super) const fn bad(message: &'static str) -> Expect {
    Fails(FailureKind::BadRequest, Some("CDC:ErrAPIInvalidParam"), message)
}

/// Plain text under 400.
const fn refused(message: &'static str) -> Expect {
    Fails(FailureKind::TidbRefused, None, message)
}

pub(super) const NO_ZERO: Expect = no_capture("capture not exists, 00000000-0000-0000-0000-000000000000");
const NO_NOPE: Expect = no_capture("capture not exists, nope");
pub(super) const EOF: Expect = bad("invalid api parameter: EOF");
pub(super) const NOT_JSON: Expect =
    bad("invalid api parameter: invalid character 'n' looking for beginning of object key string");
const NO_TEXT: Expect = bad(
    "invalid api parameter: json: cannot unmarshal number into Go struct field DrainCaptureRequest.capture_id of type string",
);

const POST_ONLY: Expect = refused("This API only support POST method");
const DDL: &str = "2d8e8492-cc95-4bb4-a311-3234f16e4408";
const UNI: &str = "01d0981e-a1c2-48c2-b6b1-5a18b354c5a9";
const SERVING: Expect = TidbStatus { version: "v8.5.3", connections: 0 };
const INFO: Expect = TidbInfo { ddl_id: DDL, version: "v8.5.3", start: 1_796_072_401 };
const NORMAL: Expect = State(UpgradeState::Normal);
const UPGRADING: Expect = State(UpgradeState::Upgrading { servers: 1, percent: 100, is_consistent: true });

/// Every recorded exchange: folder, file, outcome.
#[rustfmt::skip]
pub(super) const EXCHANGES: &[(&str, &str, Expect)] = &[
    ("cdc-classic", "01-v1-status-owner", OWNER),
    ("cdc-classic", "02-v1-health-owner", Healthy),
    ("cdc-classic", "03-v1-captures-owner", THREE),
    ("cdc-classic", "04-v1-status-nonowner", ALIVE),
    ("cdc-classic", "05-v1-health-nonowner", Healthy),
    ("cdc-classic", "06-v1-captures-nonowner", THREE),
    ("cdc-classic", "07-v1-changefeeds", Changefeeds(&[("cf-a", "normal", 470_829_664_056_115_205), ("cf-b", "normal", 470_829_664_056_115_205)])),
    ("cdc-classic", "08-v1-changefeeds-via-nonowner", Changefeeds(&[("cf-a", "normal", 470_829_664_056_115_205), ("cf-b", "normal", 470_829_664_056_115_205)])),
    ("cdc-classic", "09-v1-changefeeds-state-all", Changefeeds(&[("cf-a", "normal", 470_829_664_056_115_205), ("cf-b", "normal", 470_829_664_056_115_205)])),
    ("cdc-classic", "10-v1-changefeed-detail", Detail { state: "normal", checkpoint: 470_829_664_056_115_205, tables: PLACED }),
    ("cdc-classic", "11-v1-changefeed-missing", NO_CHANGEFEED),
    ("cdc-classic", "12-v1-processors", SIX),
    ("cdc-classic", "13-v1-processor-detail", Tables(Some((41, 118, 354)))),
    ("cdc-classic", "14-v1-processor-missing-capture", NO_NOPE),
    ("cdc-classic", "15-v1-processor-missing-cf", NO_CHANGEFEED),
    ("cdc-classic", "16-v2-status-owner", OWNER),
    ("cdc-classic", "17-v2-health-owner", Healthy),
    ("cdc-classic", "18-v2-captures-owner", THREE),
    ("cdc-classic", "19-v2-status-nonowner", ALIVE),
    ("cdc-classic", "20-v2-health-nonowner", Healthy),
    ("cdc-classic", "21-v2-captures-nonowner", THREE),
    ("cdc-classic", "22-v2-changefeeds", Changefeeds(&[("cf-a", "normal", 470_829_664_318_259_205), ("cf-b", "normal", 470_829_664_318_259_205)])),
    ("cdc-classic", "23-v2-changefeeds-via-nonowner", Changefeeds(&[("cf-a", "normal", 470_829_664_318_259_205), ("cf-b", "normal", 470_829_664_318_259_205)])),
    ("cdc-classic", "24-v2-changefeeds-state-all", Changefeeds(&[("cf-a", "normal", 470_829_664_318_259_205), ("cf-b", "normal", 470_829_664_318_259_205)])),
    ("cdc-classic", "25-v2-changefeed-detail", Detail { state: "normal", checkpoint: 470_829_664_318_259_205, tables: PLACED }),
    ("cdc-classic", "26-v2-changefeed-missing", NO_CHANGEFEED),
    ("cdc-classic", "27-v2-processors", SIX),
    ("cdc-classic", "28-v2-processor-detail", Tables(Some((41, 118, 354)))),
    ("cdc-classic", "29-v2-processor-missing-capture", NO_NOPE),
    ("cdc-classic", "30-v2-processor-missing-cf", NO_CHANGEFEED),
    ("cdc-classic", "31-v2-changefeed-status", Detail { state: "normal", checkpoint: 470_829_664_580_403_205, tables: None }),
    ("cdc-classic", "33-root-status", OWNER),
    ("cdc-classic", "34-unknown-path", NO_PAGE),
    ("cdc-classic", "35-wrong-method-captures", NO_PAGE),
    ("cdc-classic", "38-v1-drain-owner", IS_OWNER),
    ("cdc-classic", "39-v2-drain-owner", IS_OWNER),
    ("cdc-classic", "40-v2-drain-owner-via-nonowner", IS_OWNER),
    ("cdc-classic", "41-v1-drain-missing", NO_ZERO),
    ("cdc-classic", "42-v2-drain-missing", NO_ZERO),
    ("cdc-classic", "43-v2-drain-missing-via-nonowner", NO_ZERO),
    ("cdc-classic", "44-v2-drain-garbage-id", NO_NOPE),
    ("cdc-classic", "45-v1-drain-no-body", EOF),
    ("cdc-classic", "46-v1-drain-malformed", NOT_JSON),
    ("cdc-classic", "47-v1-drain-empty-object", no_capture("capture not exists,")),
    ("cdc-classic", "48-v1-drain-wrong-type", NO_TEXT),
    ("cdc-classic", "49-v1-drain-malformed-via-nonowner", NOT_JSON),
    ("cdc-classic", "50-v1-drain-post", NO_PAGE),
    ("cdc-classic", "51-v2-drain-put", NO_PAGE),
    ("cdc-classic", "52-v2-drain-get", NO_PAGE),
    ("cdc-classic", "53-v1-resign-get", NO_PAGE),
    ("cdc-classic", "54-v2-resign-put", NO_PAGE),
    ("cdc-classic", "55-v2-status-before-drain", ALIVE),
    ("cdc-classic", "56-v1-drain-once", Drained(82)),
    ("cdc-classic", "58-v2-status-after-drain", STOPPING),
    ("cdc-classic", "59-v1-status-after-drain", STOPPING),
    ("cdc-classic", "60-v2-health-after-drain", Healthy),
    ("cdc-classic", "61-v2-captures-after-drain", THREE),
    ("cdc-classic", "62-v1-captures-after-drain", THREE),
    ("cdc-classic", "63-v2-processors-after-drain", SIX),
    ("cdc-classic", "64-v2-processor-drained", Tables(None)),
    ("cdc-classic", "65-v1-processor-drained", Tables(None)),
    ("cdc-classic", "66-v1-drain-again", Drained(0)),
    ("cdc-classic", "67-v2-drain-again", Drained(0)),
    ("cdc-classic", "68-v2-changefeeds-after-drain", Changefeeds(&[("cf-a", "normal", 470_829_666_677_555_205), ("cf-b", "normal", 470_829_666_677_555_205)])),
    ("cdc-classic", "72-v1-drain-of-gone-capture", no_capture("capture not exists, c66102a2-9deb-4c8b-b5c9-911ef1d80392")),
    ("cdc-classic", "76-v2-drain-second-target-after", Drained(122)),
    ("cdc-classic", "81-v2-resign", Resigned),
    ("cdc-classic", "83-v1-resign", Resigned),
    ("cdc-classic", "85-v2-resign-via-nonowner", Resigned),
    ("cdc-classic", "89-v2-drain-of-killed-capture", no_capture("capture not exists, abeadf4f-7995-43c6-9372-51d69d484aff")),
    ("cdc-classic", "101-v2-captures-alone", Captures { owner: ALONE, ids: &[ALONE] }),
    ("cdc-classic", "102-v1-drain-alone-self", IS_ALONE),
    ("cdc-classic", "103-v2-drain-alone-self", IS_ALONE),
    ("cdc-classic", "104-v2-drain-alone-other", IS_ALONE),
    ("cdc-classic", "105-v2-resign-alone", Resigned),
    ("cdc-classic-more", "01-pause-changefeed", NotAsked(200)),
    ("cdc-classic-more", "02-changefeeds-one-stopped", Changefeeds(&[("cf-a", "normal", 470_831_007_832_997_894), ("cf-b", "stopped", 470_831_007_177_900_040)])),
    ("cdc-classic-more", "03-changefeeds-one-stopped-v1", Changefeeds(&[("cf-a", "normal", 470_831_007_964_332_040), ("cf-b", "stopped", 470_831_007_177_900_040)])),
    ("cdc-classic-more", "04-changefeed-stopped-detail-v2", Detail { state: "stopped", checkpoint: 470_831_007_177_900_040, tables: None }),
    ("cdc-classic-more", "05-changefeed-stopped-detail-v1", Detail { state: "stopped", checkpoint: 470_831_007_177_900_040, tables: None }),
    ("cdc-classic-more", "06-processors-one-stopped-v2", ONE_STOPPED),
    ("cdc-classic-more", "07-processors-one-stopped-v1", ONE_STOPPED),
    ("cdc-classic-more", "08-processor-of-stopped-v1", bad("invalid api parameter: changefeed in abnormal state: stopped, can't get processors of an abnormal changefeed")),
    ("cdc-classic-more", "09-processor-of-stopped-v2", bad("invalid api parameter: changefeed in abnormal state: stopped, can'duration get processor of an abnormal changefeed")),
    ("cdc-classic-more", "10-health-one-stopped", Healthy),
    ("cdc-classic-more", "12-resume-changefeed-empty-body", EOF),
    ("cdc-classic-more", "13-resume-changefeed", NotAsked(200)),
    ("cdc-v7.5", "01-v1-status-owner", OLD_OWNER),
    ("cdc-v7.5", "02-v1-health-owner", Healthy),
    ("cdc-v7.5", "03-v1-captures-owner", OLD_THREE),
    ("cdc-v7.5", "04-v1-status-nonowner", OLD_ALIVE),
    ("cdc-v7.5", "05-v1-health-nonowner", Healthy),
    ("cdc-v7.5", "06-v1-captures-nonowner", OLD_THREE),
    ("cdc-v7.5", "07-v1-changefeeds", Changefeeds(&[("cf-a", "normal", 470_830_184_152_694_788), ("cf-b", "normal", 470_830_184_152_694_788)])),
    ("cdc-v7.5", "08-v1-changefeeds-via-nonowner", Changefeeds(&[("cf-a", "normal", 470_830_184_152_694_788), ("cf-b", "normal", 470_830_184_152_694_788)])),
    ("cdc-v7.5", "09-v1-changefeeds-state-all", Changefeeds(&[("cf-a", "normal", 470_830_184_152_694_788), ("cf-b", "normal", 470_830_184_152_694_788)])),
    ("cdc-v7.5", "10-v1-changefeed-detail", Detail { state: "normal", checkpoint: 470_830_184_152_694_788, tables: OLD_PLACED }),
    ("cdc-v7.5", "11-v1-changefeed-missing", NO_CHANGEFEED),
    ("cdc-v7.5", "12-v1-processors", OLD_SIX),
    ("cdc-v7.5", "13-v1-processor-detail", Tables(Some((40, 116, 348)))),
    ("cdc-v7.5", "14-v1-processor-missing-capture", NO_NOPE),
    ("cdc-v7.5", "15-v1-processor-missing-cf", NO_CHANGEFEED),
    ("cdc-v7.5", "16-v2-status-owner", OLD_OWNER),
    ("cdc-v7.5", "17-v2-health-owner", Healthy),
    ("cdc-v7.5", "18-v2-captures-owner", OLD_THREE),
    ("cdc-v7.5", "19-v2-status-nonowner", OLD_ALIVE),
    ("cdc-v7.5", "20-v2-health-nonowner", Healthy),
    ("cdc-v7.5", "21-v2-captures-nonowner", OLD_THREE),
    ("cdc-v7.5", "22-v2-changefeeds", Changefeeds(&[("cf-a", "normal", 470_830_184_415_100_932), ("cf-b", "normal", 470_830_184_415_100_932)])),
    ("cdc-v7.5", "23-v2-changefeeds-via-nonowner", Changefeeds(&[("cf-a", "normal", 470_830_184_415_100_932), ("cf-b", "normal", 470_830_184_415_100_932)])),
    ("cdc-v7.5", "24-v2-changefeeds-state-all", Changefeeds(&[("cf-a", "normal", 470_830_184_415_100_932), ("cf-b", "normal", 470_830_184_415_100_932)])),
    ("cdc-v7.5", "25-v2-changefeed-detail", Detail { state: "normal", checkpoint: 470_830_184_415_100_932, tables: OLD_PLACED }),
    ("cdc-v7.5", "26-v2-changefeed-missing", NO_CHANGEFEED),
    ("cdc-v7.5", "27-v2-processors", OLD_SIX),
    ("cdc-v7.5", "28-v2-processor-detail", Tables(Some((40, 116, 348)))),
    ("cdc-v7.5", "29-v2-processor-missing-capture", NO_NOPE),
    ("cdc-v7.5", "30-v2-processor-missing-cf", NO_CHANGEFEED),
    ("cdc-v7.5", "31-v2-changefeed-status", Detail { state: "normal", checkpoint: 470_830_184_677_244_932, tables: None }),
    ("cdc-v7.5", "33-root-status", OLD_OWNER),
    ("cdc-v7.5", "34-unknown-path", NO_PAGE),
    ("cdc-v7.5", "35-wrong-method-captures", NO_PAGE),
    ("cdc-v7.5", "38-v1-drain-owner", IS_OWNER),
    ("cdc-v7.5", "39-v2-drain-owner", IS_OWNER),
    ("cdc-v7.5", "40-v2-drain-owner-via-nonowner", IS_OWNER),
    ("cdc-v7.5", "41-v1-drain-missing", NO_ZERO),
    ("cdc-v7.5", "42-v2-drain-missing", NO_ZERO),
    ("cdc-v7.5", "43-v2-drain-missing-via-nonowner", NO_ZERO),
    ("cdc-v7.5", "44-v2-drain-garbage-id", NO_NOPE),
    ("cdc-v7.5", "45-v1-drain-no-body", EOF),
    ("cdc-v7.5", "46-v1-drain-malformed", NOT_JSON),
    ("cdc-v7.5", "47-v1-drain-empty-object", no_capture("capture not exists,")),
    ("cdc-v7.5", "48-v1-drain-wrong-type", NO_TEXT),
    ("cdc-v7.5", "49-v1-drain-malformed-via-nonowner", NOT_JSON),
    ("cdc-v7.5", "50-v1-drain-post", NO_PAGE),
    ("cdc-v7.5", "51-v2-drain-put", NO_PAGE),
    ("cdc-v7.5", "52-v2-drain-get", NO_PAGE),
    ("cdc-v7.5", "53-v1-resign-get", NO_PAGE),
    ("cdc-v7.5", "54-v2-resign-put", NO_PAGE),
    ("cdc-v7.5", "55-v2-status-before-drain", OLD_ALIVE),
    ("cdc-v7.5", "56-v1-drain-once", Drained(80)),
    ("cdc-v7.5", "58-v2-status-after-drain", OLD_STOPPING),
    ("cdc-v7.5", "59-v1-status-after-drain", OLD_STOPPING),
    ("tidb", "01-status", SERVING),
    ("tidb", "02-info", INFO),
    ("tidb", "03-info-all", TidbAll { owner: DDL, servers: &[("127.0.0.1:10080", "v8.5.3")] }),
    ("tidb", "04-upgrade-show-get", POST_ONLY),
    ("tidb", "05-upgrade-show-normal", NORMAL),
    ("tidb", "06-upgrade-finish-when-normal", Finished(FinishAnswer::Duplicated)),
    ("tidb", "07-upgrade-start-get", POST_ONLY),
    ("tidb", "08-upgrade-start-put", POST_ONLY),
    ("tidb", "09-upgrade-unknown-op", refused("wrong operation:nonsense")),
    ("tidb", "10-upgrade-no-op", NO_PAGE),
    ("tidb", "11-upgrade-start", Started(StartAnswer::Success)),
    ("tidb", "12-upgrade-start-again", Started(StartAnswer::Duplicated)),
    ("tidb", "13-upgrade-show-upgrading", UPGRADING),
    ("tidb", "14-status-upgrading", SERVING),
    ("tidb", "15-info-upgrading", INFO),
    ("tidb", "18-upgrade-finish", Finished(FinishAnswer::Success)),
    ("tidb", "20-upgrade-finish-again", Finished(FinishAnswer::Duplicated)),
    ("tidb", "21-upgrade-show-after-finish", NORMAL),
    ("tidb", "24-info-all-two-versions", TidbAll { owner: DDL, servers: &[("127.0.0.1:10080", "v8.5.3"), ("127.0.0.1:10081", "v8.5.2")] }),
    ("tidb", "25-upgrade-show-two-versions-normal", NORMAL),
    ("tidb", "26-upgrade-start-two", Started(StartAnswer::Success)),
    ("tidb", "29-upgrade-finish-at-b", Finished(FinishAnswer::Success)),
    ("tidb", "30-upgrade-show-after", NORMAL),
    ("tidb", "31-upgrade-start-at-nonowner", Started(StartAnswer::Success)),
    ("tidb", "32-upgrade-finish-at-a", Finished(FinishAnswer::Success)),
    ("tidb", "33-status-before-sigterm", TidbStatus { version: "v8.5.2", connections: 1 }),
    ("tidb", "80-schema-databases", Databases(&["lab", "test"])),
    ("tidb", "81-schema-id-name-only", Names { count: 122, one: (354, "lab.t120") }),
    ("tidb", "82-db-table", Name(354, "lab.t120")),
    ("tidb", "83-db-table-missing", refused("[schema:1146]Table which ID = 999999 does not exist.")),
    ("tidb", "84-schema-table-ids", NotAsked(200)),
    ("tidb", "85-schema-db-missing", refused("[schema:1049]Unknown database 'nosuch'")),
    ("tidb", "87-uni-status", SERVING),
    ("tidb", "88-uni-info", TidbInfo { ddl_id: UNI, version: "v8.5.3", start: 1_796_074_965 }),
    ("tidb", "89-uni-info-all", TidbAll { owner: UNI, servers: &[("127.0.0.1:10080", "v8.5.3")] }),
    ("tidb", "90-uni-upgrade-show", NORMAL),
    ("tidb", "91-uni-upgrade-start", Started(StartAnswer::Success)),
    ("tidb", "92-uni-upgrade-start-again", Started(StartAnswer::Duplicated)),
    ("tidb", "93-uni-upgrade-show-2", UPGRADING),
    ("tidb", "94-uni-upgrade-finish", Finished(FinishAnswer::Success)),
    ("tidb", "95-uni-upgrade-finish-again", Finished(FinishAnswer::Duplicated)),
];
