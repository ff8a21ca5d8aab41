//! The table of what may be said when, as a page: the README shows it, and this holds the two together.

use tiroll::rollout::command::Command;
use tiroll::rollout::permission::{Rule, Stage, rule};

fn cell(rule: Rule) -> &'static str {
    match rule {
        Rule::Yes => "✔",
        Rule::No(_) => "",
        Rule::Offered(_) => "offered",
        Rule::If(_) => "(✔)",
    }
}

/// The table without the stages in which nothing may be said at all.
fn page() -> String {
    let is_mute = |stage: &Stage| Command::ALL.iter().all(|command| matches!(rule(*stage, *command), Rule::No(_)));
    let stages: Vec<Stage> = Stage::ALL.into_iter().filter(|stage| !is_mute(stage)).collect();
    let row = |first: &str, cells: Vec<&str>| format!("| {first} | {} |\n", cells.join(" | "));
    let mut page = row("command", stages.iter().map(|stage| stage.word()).collect());
    page += &row("---", stages.iter().map(|_| "---").collect());
    for command in Command::ALL {
        page += &row(command.name(), stages.iter().map(|stage| cell(rule(*stage, command))).collect());
    }
    page
}

#[test]
fn the_readme_shows_the_table_as_it_is() {
    let readme = include_str!("../../README.md");
    assert!(readme.contains(&page()), "the README's table of commands should be:\n\n{}", page());
}

#[test]
fn every_refusal_of_the_table_says_why() {
    for stage in Stage::ALL {
        for command in Command::ALL {
            if let Rule::No(why) | Rule::Offered(why) = rule(stage, command) {
                assert!(why.len() > 10, "{} while {}: {why:?}", command.name(), stage.word());
            }
        }
    }
}
