//! What the types of a scenario cannot say: names that must exist, sizes that must fit.

use std::collections::BTreeSet;

use super::{Architecture, Cluster, Effect, Scenario, Trigger};

/// Something wrong, with the value at fault, by which its place is found in the text.
pub(super) struct Wrong {
    pub(super) value: String,
    pub(super) message: String,
}

pub(super) fn check(scenario: &Scenario) -> Result<(), Wrong> {
    let wrong = |value: &str, message: String| Err(Wrong { value: value.to_owned(), message });
    if scenario.clusters.is_empty() {
        return wrong("clusters", "`clusters` is empty, expected at least one".to_owned());
    }
    if scenario.tidb.servers == 0 {
        return wrong("servers", "`servers: 0`, expected at least 1".to_owned());
    }
    if scenario.rates.concurrency == 0 {
        return wrong("concurrency", "`concurrency: 0`, expected at least 1".to_owned());
    }
    let databases: BTreeSet<&str> = scenario.databases.iter().map(|db| db.name.as_str()).collect();
    let mut ids = BTreeSet::new();
    let mut first = 1;
    for cluster in &scenario.clusters {
        if !ids.insert(cluster.id.as_str()) {
            return wrong(&cluster.id, format!("cluster id `{}` is there twice", cluster.id));
        }
        if cluster.captures == 0 {
            return wrong("captures", "`captures: 0`, expected at least 1".to_owned());
        }
        let own: Vec<String> = (first..first + cluster.captures).map(|number| format!("capture-{number}")).collect();
        first += cluster.captures;
        check_captures(scenario, cluster, &own)?;
        for feed in &cluster.changefeeds {
            if let Some(name) = feed.databases.iter().find(|name| !databases.contains(name.as_str())) {
                return wrong(name, unknown("database", name, databases.iter()));
            }
        }
    }
    let servers: Vec<String> = names("tidb", scenario.tidb.servers);
    if let Some(name) = scenario.tidb.versions.keys().find(|name| !servers.contains(name)) {
        return wrong(name, unknown("TiDB server", name, &servers));
    }
    check_faults(scenario)
}

/// The names of captures in a cluster: they exist, and can be what they are said to be.
fn check_captures(scenario: &Scenario, cluster: &Cluster, own: &[String]) -> Result<(), Wrong> {
    let wrong = |value: &str, message: String| Err(Wrong { value: value.to_owned(), message });
    let lists = [&cluster.drained, &cluster.empty, &cluster.new_architecture, &cluster.legacy];
    let named = cluster.versions.keys().chain(lists.into_iter().flatten());
    if let Some(name) = named.into_iter().find(|name| !own.contains(name)) {
        return wrong(name, unknown("capture", name, own));
    }
    if cluster.drained.contains(&own[0]) {
        return wrong(&own[0], format!("`{}` owns the cluster at the start and cannot be drained", own[0]));
    }
    if scenario.architecture == Architecture::New {
        return match cluster.changefeeds.iter().find(|feed| feed.namespace != "default") {
            Some(feed) => wrong(
                &feed.namespace,
                format!("namespace `{}` is not one of the new architecture, expected `default`", feed.namespace),
            ),
            None => Ok(()),
        };
    }
    if cluster.new_architecture.contains(&own[0]) {
        return wrong(&own[0], format!("`{}` owns the cluster at the start and cannot wait beside it", own[0]));
    }
    if let Some(name) = cluster.drained.iter().find(|name| cluster.new_architecture.contains(name)) {
        return wrong(name, format!("`{name}` waits beside classic captures and cannot be drained"));
    }
    if let Some(name) = cluster.legacy.iter().find(|name| !cluster.new_architecture.contains(name)) {
        return wrong(name, format!("`{name}` runs the classic architecture, expected a capture of the new one"));
    }
    if cluster.fake_drain && cluster.new_architecture.is_empty() {
        return wrong("fake_drain", "`fake_drain` needs captures of the new architecture".to_owned());
    }
    Ok(())
}

fn check_faults(scenario: &Scenario) -> Result<(), Wrong> {
    let mut processes = names("capture", scenario.captures());
    processes.extend(names("tidb", scenario.tidb.servers));
    processes.extend(names("pd", scenario.pd.versions.len()));
    let feeds: Vec<&str> =
        scenario.clusters.iter().flat_map(|cluster| cluster.changefeeds.iter().map(|feed| feed.id.as_str())).collect();
    let clusters: Vec<&str> = scenario.clusters.iter().map(|cluster| cluster.id.as_str()).collect();
    for fault in &scenario.faults {
        let trigger = match &fault.when {
            Trigger::Drain(name) | Trigger::TablesBelow(name, _) | Trigger::Stop(name) | Trigger::Restart(name) => {
                Some(name)
            }
            Trigger::Now | Trigger::At(_) | Trigger::Resign(_) | Trigger::UpgradeStart => None,
        };
        let (process, feed) = match &fault.effect {
            Effect::Kill(name)
            | Effect::Stop(name)
            | Effect::Refuse(name, _)
            | Effect::NoReturn(name)
            | Effect::WrongVersion(name, _)
            | Effect::SlowStart(name, _)
            | Effect::FalseZero(name) => (Some(name), None),
            Effect::Answer(answer) => (answer.process.as_ref(), None),
            Effect::StuckTable(stuck) => (stuck.process.as_ref(), None),
            Effect::Changefeed(change) => (None, Some(&change.id)),
            Effect::Lag(lag) => (None, Some(&lag.id)),
            Effect::Restart(restart) => (Some(&restart.process), None),
        };
        for name in trigger.into_iter().chain(process) {
            if !processes.contains(name) {
                return Err(Wrong { value: name.clone(), message: unknown("process", name, &processes) });
            }
        }
        if let Some(id) = feed.filter(|id| !feeds.contains(&id.as_str())) {
            return Err(Wrong { value: id.clone(), message: unknown("changefeed", id, &feeds) });
        }
        if let Trigger::Resign(id) = &fault.when
            && !clusters.contains(&id.as_str())
        {
            return Err(Wrong { value: id.clone(), message: unknown("cluster id", id, &clusters) });
        }
    }
    Ok(())
}

fn names(kind: &str, count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("{kind}-{number}")).collect()
}

fn unknown<T: AsRef<str>>(what: &str, name: &str, known: impl IntoIterator<Item = T>) -> String {
    let known: Vec<String> = known.into_iter().map(|name| name.as_ref().to_owned()).collect();
    format!("{what} `{name}` does not exist, expected one of {}", known.join(", "))
}

/// Line and column, from 1, where a value stands as a whole word; the start when it is nowhere. The last one is taken,
/// because a name is defined above and used, wrongly, below.
pub(super) fn place_of(text: &str, value: &str) -> (usize, usize) {
    let is_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let found = text.rmatch_indices(value).find(|(at, _)| {
        let before = text[..*at].chars().next_back();
        let after = text[at + value.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    });
    let Some((at, _)) = found else { return (1, 1) };
    let line = text[..at].matches('\n').count() + 1;
    let column = text[..at].chars().rev().take_while(|c| *c != '\n').count() + 1;
    (line, column)
}
