//! Scenario files: what is refused, and how it is said.

use tiroll::sim::scenario::{Scenario, builtin_names};

const GOOD: &str = "name: x
clusters:
  - version: v8.5.3
    captures: 3
tidb:
  servers: 1
  version: v8.5.3
";

fn error(text: &str) -> String {
    match Scenario::from_yaml("x.yaml", text) {
        Ok(_) => panic!("it was taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_built_in_scenarios_are_good() {
    assert_eq!(builtin_names(), ["small", "busy", "bad-night", "leftover", "new-arch", "new-arch-busy", "mixed"]);
    for name in builtin_names() {
        let scenario = Scenario::builtin(name).unwrap().unwrap();
        assert_eq!(scenario.name, name);
    }
    assert!(Scenario::builtin("nope").is_none());
    assert!(Scenario::from_yaml("x.yaml", GOOD).is_ok());
}

#[test]
fn an_unknown_field_is_refused_with_its_place() {
    let text = GOOD.replace("captures: 3", "captures: 3\n    capturs: 4");
    let error = error(&text);
    assert!(error.starts_with("x.yaml:5:5: "), "{error}");
    assert!(error.contains("capturs") && error.contains("expected one of"), "{error}");
}

#[test]
fn another_architecture_does_not_exist() {
    let error = error(&format!("{GOOD}architecture: newest\n"));
    assert!(error.starts_with("x.yaml:8:15: "), "{error}");
    assert!(error.contains("architecture `newest` does not exist, expected `classic` or `new`"), "{error}");
}

#[test]
fn captures_are_what_their_architecture_allows() {
    let with = |line: &str| GOOD.replace("captures: 3", &format!("captures: 3\n    {line}"));
    let wrong = error(&with("new_architecture: [capture-9]"));
    assert!(wrong.starts_with("x.yaml:5:24: capture `capture-9` does not exist"), "{wrong}");
    let wrong = error(&with("new_architecture: [capture-1]"));
    assert!(wrong.contains("`capture-1` owns the cluster at the start and cannot wait beside it"), "{wrong}");
    let wrong = error(&with("legacy: [capture-2]"));
    assert!(wrong.contains("`capture-2` runs the classic architecture"), "{wrong}");
    let wrong = error(&with("fake_drain: true"));
    assert!(wrong.contains("`fake_drain` needs captures of the new architecture"), "{wrong}");
    let wrong = error(&with("drained: [capture-3]\n    new_architecture: [capture-3]"));
    assert!(wrong.contains("`capture-3` waits beside classic captures"), "{wrong}");
    let new = format!("{}architecture: new\n", with("legacy: [capture-2]\n    fake_drain: true"));
    assert!(Scenario::from_yaml("x.yaml", &new).is_ok());
    let wrong =
        error(&new.replace("captures: 3", "captures: 3\n    changefeeds: [{ id: a, namespace: b, databases: [] }]"));
    assert!(wrong.contains("namespace `b` is not one of the new architecture"), "{wrong}");
    let wrong = error(&format!("{new}faults:\n  - do: {{ false_zero: {{ process: capture-4 }} }}\n"));
    assert!(wrong.contains("process `capture-4` does not exist"), "{wrong}");
}

#[test]
fn a_value_of_the_wrong_kind_is_named() {
    let wrong = error(&GOOD.replace("captures: 3", "captures: many"));
    assert!(wrong.starts_with("x.yaml:4:15: "), "{wrong}");
    assert!(wrong.contains("many") && wrong.contains("usize"), "{wrong}");
    let wrong = error(&GOOD.replace("version: v8.5.3\n    cap", "version: 8.5\n    cap"));
    assert!(wrong.starts_with("x.yaml:3:14: "), "{wrong}");
    let wrong = error(&format!("{GOOD}rates:\n  move_ms: [5, 2]\n"));
    assert!(wrong.starts_with("x.yaml:9:12: ") && wrong.contains("[5, 2] is not a span"), "{wrong}");
}

#[test]
fn names_must_exist() {
    let wrong = error(&GOOD.replace("captures: 3", "captures: 3\n    drained: [capture-9]"));
    assert_eq!(
        wrong,
        "x.yaml:5:15: capture `capture-9` does not exist, expected one of capture-1, capture-2, capture-3"
    );
    let wrong = error(&GOOD.replace("captures: 3", "captures: 3\n    drained: [capture-1]"));
    assert!(wrong.contains("owns the cluster"), "{wrong}");
    let wrong = error(&format!("{GOOD}faults:\n  - do: {{ kill: capture-7 }}\n"));
    assert!(wrong.starts_with("x.yaml:9:17: process `capture-7` does not exist"), "{wrong}");
}

#[test]
fn a_fault_says_exactly_one_thing() {
    let wrong = error(&format!("{GOOD}faults:\n  - do: {{ kill: capture-2, stop: capture-2 }}\n"));
    assert!(wrong.contains("`do` says 2 things, expected exactly one of kill"), "{wrong}");
    let wrong = error(&format!("{GOOD}faults:\n  - do: {{ explode: capture-2 }}\n"));
    assert!(wrong.contains("explode") && wrong.starts_with("x.yaml:9:"), "{wrong}");
}

#[test]
fn a_missing_field_is_named() {
    let wrong = error("name: x\nclusters: []\n");
    assert!(wrong.contains("missing field `tidb`"), "{wrong}");
    let wrong = error(&GOOD.replace("captures: 3", "captures: 0"));
    assert!(wrong.starts_with("x.yaml:4:5: `captures: 0`"), "{wrong}");
}
