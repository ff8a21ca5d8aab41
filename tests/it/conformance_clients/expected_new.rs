//! What each recording of the new architecture says, written by reading it.

use tiroll::cluster::FailureKind;

use super::expected::Expect::{
    self, Captures, Changefeeds, Detail, Drained, Fails, Healthy, NotAsked, Placed, Processors, Resigned, Status,
};
use super::expected::{EOF, IS_OWNER, NO_PAGE, NO_ZERO, NOT_JSON, bad, no_capture};

// The three captures by their ports 18300, 18301 and 18302, the one that was left alone, and the one that waited for
// the classic captures.
const C0: &str = "08a4888d-5d13-46f2-a588-d2abc1b04dff";
const C1: &str = "93ebfa50-0c5b-481c-ae0d-99229cfe6526";
const C2: &str = "f4520485-e2e6-44eb-80d1-f003e07174d6";
const ALONE: &str = "8bc4babf-0232-442b-83ce-48160de50e12";
pub(super) const WAITED: &str = "1c382cdb-81a3-4888-8d18-6ec4ccdf8361";

const OWNER: Expect = Status { version: "v8.5.4", id: C0, is_owner: true, liveness: 0 };
const ALIVE: Expect = Status { version: "v8.5.4", id: C1, is_owner: false, liveness: 0 };
const STOPPING: Expect = Status { version: "v8.5.4", id: C2, is_owner: false, liveness: 2 };
const THREE: Expect = Captures { owner: C0, ids: &[C0, C1, C2] };
const TWO: Expect =
    Changefeeds(&[("cf-a", "normal", 470_829_957_682_036_754), ("cf-b", "normal", 470_829_957_550_702_609)]);
const A: Expect = Detail { state: "normal", checkpoint: 470_829_957_682_036_754, tables: None };
const PLACED: Expect = Placed(&[(C0, Some((40, 122, 354))), (C1, Some((40, 116, 348))), (C2, Some((40, 118, 352)))]);
// Always empty, and of any id whatever: it says nothing.
const NO_PROCESSORS: Expect = Processors { changefeeds: &[], captures: &[] };
const NULL: Expect = Fails(FailureKind::Malformed, None, "the tables are null, which is not an empty list");
const NO_CHANGEFEED: Expect =
    Fails(FailureKind::NoSuchChangefeed, Some("CDC:ErrChangeFeedNotExists"), "changefeed not exists, nope");
const NO_TEXT: Expect = bad(
    "invalid api parameter: json: cannot unmarshal number into Go struct field drainCaptureRequest.capture_id of type string",
);

/// No maintainer was found, with the words the server found.
const fn no_maintainer(message: &'static str) -> Expect {
    Fails(FailureKind::NoMaintainer, None, message)
}

/// Every recorded exchange: folder, file, outcome.
#[rustfmt::skip]
pub(super) const EXCHANGES: &[(&str, &str, Expect)] = &[
    ("cdc-new", "01-v1-status-owner", OWNER),
    ("cdc-new", "02-v1-health-owner", Healthy),
    ("cdc-new", "03-v1-captures-owner", THREE),
    ("cdc-new", "04-v1-status-nonowner", ALIVE),
    ("cdc-new", "05-v1-health-nonowner", Healthy),
    ("cdc-new", "06-v1-captures-nonowner", THREE),
    ("cdc-new", "07-v1-changefeeds", TWO),
    ("cdc-new", "08-v1-changefeeds-via-nonowner", TWO),
    ("cdc-new", "09-v1-changefeeds-state-all", TWO),
    ("cdc-new", "10-v1-changefeed-detail", A),
    ("cdc-new", "11-v1-changefeed-missing", NO_CHANGEFEED),
    ("cdc-new", "12-v1-processors", NO_PROCESSORS),
    ("cdc-new", "13-v1-processor-detail", NULL),
    ("cdc-new", "14-v1-processor-missing-capture", NULL),
    ("cdc-new", "15-v1-processor-missing-cf", NULL),
    ("cdc-new", "16-v2-status-owner", OWNER),
    ("cdc-new", "17-v2-health-owner", Healthy),
    ("cdc-new", "18-v2-captures-owner", THREE),
    ("cdc-new", "19-v2-status-nonowner", ALIVE),
    ("cdc-new", "20-v2-health-nonowner", Healthy),
    ("cdc-new", "21-v2-captures-nonowner", THREE),
    ("cdc-new", "22-v2-changefeeds", TWO),
    ("cdc-new", "23-v2-changefeeds-via-nonowner", TWO),
    ("cdc-new", "24-v2-changefeeds-state-all", TWO),
    ("cdc-new", "25-v2-changefeed-detail", A),
    ("cdc-new", "26-v2-changefeed-missing", NO_CHANGEFEED),
    ("cdc-new", "27-v2-processors", NO_PROCESSORS),
    ("cdc-new", "28-v2-processor-detail", NULL),
    ("cdc-new", "29-v2-processor-missing-capture", NULL),
    ("cdc-new", "30-v2-processor-missing-cf", NULL),
    ("cdc-new", "31-v2-changefeed-status", A),
    ("cdc-new", "32-v2-changefeed-synced", NotAsked(200)),
    ("cdc-new", "33-root-status", OWNER),
    ("cdc-new", "34-unknown-path", NO_PAGE),
    ("cdc-new", "35-wrong-method-captures", NO_PAGE),
    ("cdc-new", "36-metrics-head", NotAsked(200)),
    ("cdc-new", "38-v2-cf-tables-owner", PLACED),
    ("cdc-new", "39-v2-cf-tables-nonowner", PLACED),
    // 120 tables and the DDL dispatcher: what the tables call lists too, from the same maintainer.
    ("cdc-new", "40-v2-cf-dispatcher-count", NotAsked(200)),
    ("cdc-new", "41-debug-info", NotAsked(200)),
    ("cdc-new", "42-v1-drain-owner", IS_OWNER),
    ("cdc-new", "43-v2-drain-owner", NO_PAGE),
    ("cdc-new", "44-v2-drain-owner-via-nonowner", NO_PAGE),
    ("cdc-new", "45-v1-drain-missing", NO_ZERO),
    ("cdc-new", "46-v2-drain-missing", NO_PAGE),
    ("cdc-new", "47-v2-drain-missing-via-nonowner", NO_PAGE),
    ("cdc-new", "48-v2-drain-garbage-id", NO_PAGE),
    ("cdc-new", "49-v1-drain-no-body", EOF),
    ("cdc-new", "50-v1-drain-malformed", NOT_JSON),
    ("cdc-new", "51-v1-drain-empty-object", no_capture("capture not exists,")),
    ("cdc-new", "52-v1-drain-wrong-type", NO_TEXT),
    ("cdc-new", "53-v1-drain-malformed-via-nonowner", NOT_JSON),
    ("cdc-new", "54-v1-drain-post", NO_PAGE),
    ("cdc-new", "55-v2-drain-put", NO_PAGE),
    ("cdc-new", "56-v2-drain-get", NO_PAGE),
    ("cdc-new", "57-v1-resign-get", NO_PAGE),
    ("cdc-new", "58-v2-resign-put", NO_PAGE),
    ("cdc-new", "60-v2-status-after-drain", STOPPING),
    ("cdc-new", "61-v2-health-after-drain", Healthy),
    ("cdc-new", "62-v2-captures-after-drain", THREE),
    ("cdc-new", "63-v2-tables-after-drain", Placed(&[(C0, Some((60, 122, 354))), (C1, Some((60, 116, 352)))])),
    ("cdc-new", "64-v1-drain-again", Drained(0)),
    ("cdc-new", "65-v1-drain-again-via-nonowner", Drained(0)),
    // Not one table: the drain of the first is not over while it is a member.
    ("cdc-new", "66-v1-drain-other-while-first-not-removed", Drained(1)),
    ("cdc-new", "70-v1-drain-of-gone-capture-while-another-is-drained", no_capture("capture not exists, 93ebfa50-0c5b-481c-ae0d-99229cfe6526")),
    ("cdc-new", "75-v1-drain-of-gone-capture-while-another-is-drained", no_capture("capture not exists, 00e96517-c817-496d-9811-b15e1feb07c9")),
    // Zero of a capture that is not there: it was drained before it left.
    ("cdc-new", "78-v1-drain-of-gone-capture", Drained(0)),
    ("cdc-new", "83-v1-drain-of-gone-capture", Drained(0)),
    ("cdc-new", "86-v2-resign", Resigned),
    ("cdc-new", "88-v1-resign", Resigned),
    ("cdc-new", "92-v2-drain-of-killed-capture", NO_PAGE),
    ("cdc-new", "102-v2-captures-alone", Captures { owner: ALONE, ids: &[ALONE] }),
    ("cdc-new", "103-v1-drain-alone-self", IS_OWNER),
    ("cdc-new", "104-v2-drain-alone-self", NO_PAGE),
    ("cdc-new", "105-v2-drain-alone-other", NO_PAGE),
    ("cdc-new", "106-v2-resign-alone", Resigned),
    ("cdc-new", "111-mixed-new-arch-after-classic-gone-captures", Captures { owner: WAITED, ids: &[WAITED] }),
    ("cdc-new", "112-mixed-new-arch-after-classic-gone-changefeeds", Changefeeds(&[("cf-a", "normal", 470_830_267_514_748_930), ("cf-b", "normal", 470_830_267_514_748_930)])),
    // The DDL dispatcher alone, of a changefeed with 120 tables.
    ("cdc-new", "113-mixed-new-arch-after-classic-gone-tables", Placed(&[(WAITED, None)])),
    ("cdc-new", "114-v2-tables-while-maintainer-node-dead", no_maintainer("Can't not find maintainer for changefeed: cf-a")),
    ("cdc-new", "115-v2-changefeed-while-maintainer-node-dead", Fails(FailureKind::NoOwner, None, "Get \"http://127.0.0.1:18301/api/v2/changefeeds/cf-a\": dial tcp 127.0.0.1:18301: connect: connection refused")),
    ("cdc-new", "116-v2-changefeeds-while-maintainer-node-dead", Fails(FailureKind::NoOwner, None, "Get \"http://127.0.0.1:18301/api/v2/changefeeds\": dial tcp 127.0.0.1:18301: connect: connection refused")),
    ("cdc-new-more", "01-pause-changefeed", NotAsked(200)),
    ("cdc-new-more", "02-changefeeds-one-stopped", Changefeeds(&[("cf-a", "normal", 470_831_123_839_582_224), ("cf-b", "stopped", 470_831_123_052_888_080)])),
    ("cdc-new-more", "03-changefeed-stopped-detail", Detail { state: "stopped", checkpoint: 470_831_123_052_888_080, tables: None }),
    ("cdc-new-more", "04-tables-of-stopped", no_maintainer("Can't not find maintainer for changefeed: cf-b")),
    ("cdc-new-more", "05-health-one-stopped", Healthy),
    ("cdc-new-more", "07-resume-changefeed", NotAsked(200)),
];
