//! What a reader in another process is told is what one in this process sees.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tiroll::rollout::command::Command;

use super::examples::{drains, is_over};
use super::model::Course;

/// A value after it was written as JSON and read again.
fn told<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let text = serde_json::to_string(value).expect("it is JSON");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn is_told_exactly(course: &Course) {
    let mut view = course.engine.view();
    // The last binary digit of a rate may be lost on the way through decimals; nobody sees it.
    if let Some(rate) = view.drain.as_mut().and_then(|drain| drain.rate.as_mut()) {
        *rate = rate.round();
    }
    assert_eq!(told(&view), view);
}

#[test]
fn every_view_and_every_event_of_an_upgrade_is_told_exactly() {
    for mut course in [Course::new(3, true), Course::of_new_architecture(3, true)] {
        course.until("the end", |course| {
            is_told_exactly(course);
            is_over(course)
        });
        assert!(course.events.len() > 50);
        assert_eq!(told(&course.events), course.events);
    }
}

#[test]
fn a_question_and_what_an_abort_leaves_are_told_exactly() {
    let mut course = Course::new(3, true);
    course.is_stuck = true;
    course.until("a drain", |course| drains(course) > 0);
    course.until("the question", |course| {
        is_told_exactly(course);
        course.asked().is_some()
    });
    assert_eq!(course.say(Command::Abort), Ok(()));
    is_told_exactly(&course);
    assert!(!course.engine.view().owed.is_empty());
    assert_eq!(told(&course.events), course.events);
}
