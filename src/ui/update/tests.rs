use super::*;
use crate::rollout::view::PhaseState;
use crate::ui::fixture;
use crate::ui::state::Steering;

/// Presses keys written as people write them: `x`, `<enter>`, `<tab>`, `<ctrl-c>`; `<wait>` lets a second pass.
fn script(state: &mut UiState, view: &Arc<View>, keys: &str) -> Vec<UiEffect> {
    let mut effects = Vec::new();
    for word in keys.split_whitespace() {
        let (code, modifiers) = match word {
            "<wait>" => {
                state.now = state.now.plus(Duration::from_secs(1));
                continue;
            }
            "<enter>" => (KeyCode::Enter, KeyModifiers::NONE),
            "<esc>" => (KeyCode::Esc, KeyModifiers::NONE),
            "<tab>" => (KeyCode::Tab, KeyModifiers::NONE),
            "<shift-tab>" => (KeyCode::BackTab, KeyModifiers::SHIFT),
            "<right>" => (KeyCode::Right, KeyModifiers::NONE),
            "<ctrl-c>" => (KeyCode::Char('c'), KeyModifiers::CONTROL),
            "<ctrl-l>" => (KeyCode::Char('l'), KeyModifiers::CONTROL),
            "<ctrl-z>" => (KeyCode::Char('z'), KeyModifiers::CONTROL),
            letters => {
                for c in letters.chars() {
                    let key = KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
                    effects.extend(update(state, view, Msg::Key(key)));
                }
                continue;
            }
        };
        effects.extend(update(state, view, Msg::Key(KeyEvent::new(code, modifiers))));
    }
    effects
}

fn notice_of(state: &UiState) -> String {
    state.live_notice().map(|notice| notice.text.clone()).unwrap_or_default()
}

fn dialog_of(state: &UiState) -> Option<&Dialog> {
    match state.modals.last() {
        Some(Modal::Dialog(dialog)) => Some(dialog),
        _ => None,
    }
}

#[test]
fn a_harmless_command_goes_out_at_once_and_a_refused_one_says_why() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::stepping()));
    assert_eq!(script(&mut state, &view, "s"), [UiEffect::Tell(Command::Step)]);
    assert_eq!(script(&mut state, &view, "p"), []);
    assert!(notice_of(&state).contains("makes no sense"), "{}", notice_of(&state));
}

#[test]
fn an_unknown_key_points_to_the_help() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::stepping()));
    assert_eq!(script(&mut state, &view, "z"), []);
    assert_eq!(notice_of(&state), "z does nothing; ? shows the keys");
}

#[test]
fn an_abort_needs_two_different_keys_and_a_moment_between_them() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::draining()));
    assert_eq!(script(&mut state, &view, "x y"), [], "answered before the dialog could be read");
    assert!(dialog_of(&state).is_some());
    assert_eq!(script(&mut state, &view, "<wait> y"), [UiEffect::Tell(Command::Abort)]);
    assert!(dialog_of(&state).is_none());
}

#[test]
fn enter_alone_keeps_going() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::draining()));
    assert_eq!(script(&mut state, &view, "x <wait> <enter>"), []);
    assert!(dialog_of(&state).is_none());
    assert_eq!(script(&mut state, &view, "x <right> <wait> <enter>"), [UiEffect::Tell(Command::Abort)]);
}

#[test]
fn a_held_key_never_acts_but_moves() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::stepping()));
    for kind in [KeyEventKind::Repeat, KeyEventKind::Release] {
        for code in [KeyCode::Char('s'), KeyCode::Char('x'), KeyCode::Enter, KeyCode::Char('q')] {
            let key = KeyEvent::new_with_kind(code, KeyModifiers::NONE, kind);
            assert_eq!(update(&mut state, &view, Msg::Key(key)), []);
            assert!(state.modals.is_empty());
        }
    }
    let key = KeyEvent::new_with_kind(KeyCode::Up, KeyModifiers::NONE, KeyEventKind::Repeat);
    update(&mut state, &view, Msg::Key(key));
    assert!(state.capture.is_some());
}

#[test]
fn the_abort_of_a_running_restart_wants_the_address_typed() {
    let mut view = fixture::draining();
    view.plan[1].phases[0].state = PhaseState::Done;
    view.plan[1].phases[1].state = PhaseState::Running;
    view.cursor = Some((1, 1));
    let (mut state, view) = (fixture::state(), Arc::new(view));
    assert_eq!(script(&mut state, &view, "x <wait> <right> <enter>"), []);
    assert_eq!(notice_of(&state), "type 127.0.0.1:8302 first");
    assert_eq!(script(&mut state, &view, "127.0.0.1:8302 <enter>"), [UiEffect::Tell(Command::Abort)]);
}

/// What is typed with the spaces in it.
fn types(state: &mut UiState, view: &Arc<View>, text: &str) {
    for c in text.chars() {
        update(state, view, Msg::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)));
    }
}

#[test]
fn a_forced_restart_wants_name_and_number_and_a_reason() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::question()));
    assert_eq!(script(&mut state, &view, "T <wait> <right> <enter>"), []);
    assert_eq!(notice_of(&state), "type 127.0.0.1:8302 17 first");
    types(&mut state, &view, "127.0.0.1:8302 17");
    assert_eq!(script(&mut state, &view, "<enter>"), []);
    assert_eq!(notice_of(&state), "say why first: the reason is kept in the journal");
    // Back to the first button: Enter goes where something is still to be typed, and never gives the command.
    assert_eq!(script(&mut state, &view, "<shift-tab> <enter>"), []);
    types(&mut state, &view, "sink is gone ");
    assert_eq!(script(&mut state, &view, "<enter>"), [], "the button has the focus now and was not pressed");
    let force = Instruction::by_name(Command::Force, "127.0.0.1:8302 17", "sink is gone");
    assert_eq!(script(&mut state, &view, "<enter>"), [UiEffect::ByName(force)]);
}

#[test]
fn fewer_tables_than_were_typed_leave_the_dialog_as_it_is_and_more_do_not_count() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::question()));
    script(&mut state, &view, "T <wait>");
    types(&mut state, &view, "127.0.0.1:8302 17");
    let mut moved = fixture::question();
    moved.by_name = vec![fixture::by_force(12)];
    update(&mut state, &Arc::new(moved), Msg::ViewChanged);
    assert!(dialog_of(&state).unwrap().text[0].contains("12 tables"));
    assert_eq!(
        dialog_of(&state).unwrap().typed.as_ref().unwrap().missing().unwrap(),
        "say why first: the reason is kept in the journal"
    );
    let mut given = fixture::question();
    given.by_name = vec![fixture::by_force(18)];
    update(&mut state, &Arc::new(given), Msg::ViewChanged);
    assert_eq!(dialog_of(&state).unwrap().typed.as_ref().unwrap().missing().unwrap(), "type 127.0.0.1:8302 18 first");
}

#[test]
fn an_open_abort_dialog_follows_the_rollout_and_waits_again() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::draining()));
    script(&mut state, &view, "x <right> <wait>");
    let before = dialog_of(&state).unwrap().text.clone();
    let mut moved = fixture::draining();
    moved.plan[1].phases[0].state = PhaseState::Done;
    moved.plan[1].phases[2].state = PhaseState::Running;
    moved.cursor = Some((1, 2));
    let moved = Arc::new(moved);
    update(&mut state, &moved, Msg::ViewChanged);
    let dialog = dialog_of(&state).unwrap();
    assert_ne!(dialog.text, before);
    assert_eq!(dialog.focus, 1, "the finger stays where it is");
    assert_eq!(script(&mut state, &moved, "<enter>"), [], "but the new text has to stand first");
    assert_eq!(script(&mut state, &moved, "<wait> <enter>"), [UiEffect::Tell(Command::Abort)]);
}

#[test]
fn a_dialog_about_something_that_is_gone_closes_itself() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::aborted()));
    script(&mut state, &view, "R");
    assert!(dialog_of(&state).is_some());
    let other = Arc::new(fixture::stepping());
    update(&mut state, &other, Msg::ViewChanged);
    assert!(dialog_of(&state).is_none());
    assert_eq!(notice_of(&state), "the rollout moved on; recover was not given");
}

#[test]
fn the_recover_dialog_names_the_capture() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::aborted()));
    script(&mut state, &view, "R");
    let dialog = dialog_of(&state).unwrap();
    assert_eq!(dialog.title, "Recover 127.0.0.1:8302?");
    assert_eq!(script(&mut state, &view, "<wait> y"), [UiEffect::Tell(Command::Recover)]);
}

#[test]
fn leaving_offers_to_stay_to_pause_and_to_abort() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::draining()));
    assert_eq!(script(&mut state, &view, "<ctrl-c>"), []);
    let answers: Vec<_> = dialog_of(&state).unwrap().buttons.iter().map(|button| button.answer).collect();
    assert_eq!(answers, [Answer::Cancel, Answer::PauseAndLeave, Answer::Leave, Answer::AbortDialog]);
    assert_eq!(script(&mut state, &view, "<ctrl-c>"), [], "a second one does not leave either");
    assert_eq!(state.modals.len(), 1);
    assert_eq!(script(&mut state, &view, "<wait> p"), [UiEffect::PauseAndLeave]);
    assert_eq!(script(&mut state, &view, "q <wait> l"), [UiEffect::Quit(Leave::Left)]);
    script(&mut state, &view, "q <wait> x");
    assert_eq!(dialog_of(&state).unwrap().ask, Ask::Command(Command::Abort));
}

#[test]
fn nothing_to_lose_means_no_question() {
    let mut state = fixture::state();
    let left = |state: &mut UiState, view: View| script(state, &Arc::new(view), "q");
    assert_eq!(left(&mut state, fixture::ended()), [UiEffect::Quit(Leave::Ended)]);
    assert_eq!(left(&mut state, fixture::reading()), [UiEffect::Quit(Leave::Left)]);
    assert_eq!(left(&mut state, fixture::watching()), [UiEffect::Quit(Leave::Left)]);
    state.steering = Steering::EngineGone;
    assert_eq!(left(&mut state, fixture::draining()), [UiEffect::Quit(Leave::Left)]);
}

#[test]
fn looking_only_steers_nothing() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::stepping()));
    state.steering = Steering::LooksOnly;
    assert_eq!(script(&mut state, &view, "s c p"), []);
    assert!(notice_of(&state).contains("only looks"));
}

#[test]
fn the_selection_stays_with_its_capture_when_rows_move() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::stepping()));
    script(&mut state, &view, "g j");
    let chosen = state.capture.clone().unwrap();
    assert_eq!(view.capture(&chosen).unwrap().address, "127.0.0.1:8301");
    let mut moved = fixture::stepping();
    moved.groups[0].captures.remove(0);
    assert_eq!(select::capture_place(&state, &moved), 0);
    assert_eq!(state.capture, Some(chosen));
}

#[test]
fn a_filter_is_typed_kept_and_cleared() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::stepping()));
    assert_eq!(script(&mut state, &view, "/ 8301 s"), [], "letters go into the filter, not to the rollout");
    assert_eq!(state.capture_filter, "8301s");
    state.capture_filter.pop();
    assert_eq!(state.captures(&view).count(), 1);
    script(&mut state, &view, "<enter> j");
    assert_eq!(state.capture_filter, "8301");
    script(&mut state, &view, "<esc>");
    assert_eq!(state.captures(&view).count(), 3);
    script(&mut state, &view, "/ !8301 <enter>");
    assert_eq!(state.captures(&view).count(), 2);
}

#[test]
fn pasted_text_is_never_keys() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::stepping()));
    assert_eq!(update(&mut state, &view, Msg::Paste("sxc\n".to_owned())), []);
    assert!(state.modals.is_empty());
    script(&mut state, &view, "/");
    update(&mut state, &view, Msg::Paste("83\u{1b}[0m01\n".to_owned()));
    assert_eq!(state.capture_filter, "8301 ");
}

#[test]
fn a_call_for_a_person_rings_once_and_unfreezes_the_display() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::draining()));
    script(&mut state, &view, "f");
    assert!(state.frozen.is_some());
    let asked = Arc::new(fixture::question());
    assert_eq!(update(&mut state, &asked, Msg::ViewChanged), [UiEffect::Ring]);
    assert!(state.frozen.is_none());
    assert_eq!(update(&mut state, &asked, Msg::ViewChanged), []);
    update(&mut state, &view, Msg::ViewChanged);
    assert_eq!(update(&mut state, &asked, Msg::ViewChanged), [UiEffect::Ring]);
}

#[test]
fn pause_works_from_a_page_and_pages_close_one_by_one() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::draining()));
    script(&mut state, &view, "<enter> ?");
    assert_eq!(state.modals.len(), 2);
    assert_eq!(script(&mut state, &view, "p"), [UiEffect::Tell(Command::Pause)]);
    script(&mut state, &view, "<esc>");
    assert_eq!(state.modals.len(), 1);
    assert_eq!(script(&mut state, &view, "q"), [], "q closes the page, not the program");
    assert!(state.modals.is_empty());
}

#[test]
fn a_page_scrolls_no_further_than_its_end() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::stepping()));
    script(&mut state, &view, "g <enter> G");
    let Some(Modal::Detail(detail)) = state.modals.last() else { panic!("no page") };
    let end = detail.scroll;
    assert!(end > 0);
    script(&mut state, &view, "j k");
    let Some(Modal::Detail(detail)) = state.modals.last() else { panic!("no page") };
    assert_eq!(detail.scroll, end - 1);
}

#[test]
fn tab_walks_all_panes_and_back() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::stepping()));
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(state.focus);
        script(&mut state, &view, "<tab>");
    }
    assert_eq!(seen, [Pane::Captures, Pane::Changefeeds, Pane::Tidb, Pane::Events, Pane::Plan]);
    script(&mut state, &view, "<shift-tab>");
    assert_eq!(state.focus, Pane::Plan);
}

#[test]
fn events_that_were_missed_are_owned_up_to() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::stepping()));
    update(&mut state, &view, Msg::Missed(7));
    assert_eq!(state.entries().next().unwrap().text, "7 events not shown: they came too fast");
}

#[test]
fn redraw_and_suspend_work_in_front_of_everything() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::draining()));
    assert_eq!(script(&mut state, &view, "x <ctrl-l> <ctrl-z>"), [UiEffect::Redraw, UiEffect::Suspend]);
    assert!(dialog_of(&state).is_some());
}
