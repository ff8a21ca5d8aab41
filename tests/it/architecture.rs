//! The house as a test: who may import whom, what stands where, how long a file may be.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Each room and the rooms it may import, some only in part. A room may always import itself.
const IMPORTS: &[(&str, &[&str])] = &[
    ("cluster", &[]),
    ("rollout", &["cluster"]),
    ("api", &["cluster"]),
    ("exec", &["cluster", "rollout::effect", "api::http"]),
    ("journal", &["cluster"]),
    ("driver", &["cluster", "rollout", "api", "exec"]),
    ("sim", &[]),
    ("ui", &["cluster", "rollout::view", "rollout::event", "rollout::command", "driver::handle"]),
    ("crash", &["ui::terminal"]),
    ("cli", &["cluster", "rollout", "api", "exec", "journal", "driver", "sim", "ui", "crash"]),
    ("main", &["cli"]),
];

/// Words of foreign crates, and the only files (or folders, with a slash) that may use them.
const PLACES: &[(&str, &[&str])] = &[
    ("reqwest::", &["api/http.rs"]),
    ("ratatui", &["ui.rs", "ui/"]),
    ("crossterm", &["ui.rs", "ui/"]),
    ("Color::", &["ui/theme.rs"]),
    // The event loop reads the timer of tokio, which tests can stop.
    ("Instant::now", &["driver/clock.rs", "sim/clock.rs", "ui/event_loop.rs"]),
    ("SystemTime::now", &["driver/clock.rs", "sim/clock.rs"]),
    ("io::stdout", &["cli/output.rs", "ui/terminal.rs"]),
    ("io::stderr", &["cli/output.rs", "ui/terminal.rs", "crash.rs"]),
    ("axum", &["sim.rs", "sim/"]),
    ("crc32fast", &["journal/line.rs"]),
    ("try_lock", &["journal/lock.rs"]),
    ("sync_data", &["journal/disk.rs"]),
    ("tokio::", &["api/", "cli.rs", "cli/", "driver.rs", "driver/", "sim.rs", "sim/", "ui.rs", "ui/"]),
];

/// The longest a file may be.
const LONGEST: usize = 600;

fn sources() -> Vec<(PathBuf, String)> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &mut found);
    found.sort();
    found
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a source file");
            (path.strip_prefix(&root).expect("it is under the root").to_path_buf(), text)
        })
        .collect()
}

fn room(path: &Path) -> String {
    let first = path.iter().next().expect("a name").to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// The code of a file, without comments and without its unit tests.
fn code(text: &str) -> String {
    let until_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    until_tests.lines().map(|line| line.split("//").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Every path that follows `crate::`, with groups in braces taken apart one level deep.
fn imports(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let inside = group.split('}').next().unwrap_or(group);
            found.extend(inside.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()));
        } else {
            let path: String = rest.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect();
            found.push(path);
        }
    }
    found
}

#[test]
fn rooms_import_only_what_the_table_allows() {
    let table: BTreeMap<_, _> = IMPORTS.iter().copied().collect();
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let here = room(&path);
        if here == "lib" {
            continue;
        }
        let Some(allowed) = table.get(here.as_str()) else {
            wrong.push(format!("{}: the room `{here}` is not in the table", path.display()));
            continue;
        };
        for import in imports(&code(&text)) {
            let is_own = import.split("::").next() == Some(here.as_str());
            let is_allowed = allowed.iter().any(|path| import == *path || import.starts_with(&format!("{path}::")));
            if !is_own && !is_allowed {
                wrong.push(format!("{}: crate::{import}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "imports against the table:\n{}", wrong.join("\n"));
}

#[test]
fn foreign_words_stand_only_in_their_places() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let name = path.to_string_lossy().into_owned();
        if name == "lib.rs" || name.contains("test") {
            continue;
        }
        let code = code(&text);
        for (word, places) in PLACES {
            let is_here = code.contains(word);
            let may = places.iter().any(|place| name == *place || (place.ends_with('/') && name.starts_with(place)));
            if is_here && !may {
                wrong.push(format!("{name}: {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "words out of place:\n{}", wrong.join("\n"));
}

#[test]
fn widgets_know_nothing_of_ours() {
    for (path, text) in sources() {
        let name = path.to_string_lossy().into_owned();
        if name.starts_with("ui/widgets") {
            let wrong: Vec<_> =
                imports(&code(&text)).into_iter().filter(|path| !path.starts_with("ui::widgets")).collect();
            assert!(wrong.is_empty(), "{name}: {wrong:?}");
        }
    }
}

#[test]
fn files_can_be_read_in_a_sitting() {
    let long: Vec<_> = sources()
        .into_iter()
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > LONGEST)
        .collect();
    assert!(long.is_empty(), "over {LONGEST} lines: {long:?}");
}

#[test]
fn the_checks_would_notice() {
    assert_eq!(imports("use crate::{api, sim::World};"), ["api", "sim::World"]);
    assert_eq!(imports("let x = crate::sim::start();"), ["sim::start"]);
    assert!(!code("// crate::sim\nfn f() {}").contains("crate::sim"));
}

#[test]
fn the_readme_lists_every_key_of_the_screen() {
    let readme = include_str!("../../README.md");
    for (keys, help) in tiroll::ui::keys() {
        let row = format!("| {} | {help} |", keys.replace('|', "\\|"));
        assert!(readme.contains(&row), "the README lacks the row\n{row}");
    }
}
