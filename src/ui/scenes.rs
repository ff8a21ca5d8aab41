//! What the screen looks like in every situation, and that no size breaks it.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Modifier;

use crate::rollout::view::View;

use super::message::Msg;
use super::state::UiState;
use super::theme::Theme;
use super::update::update;
use super::{fixture, view};

fn painted(view: &View, state: &UiState, theme: Theme) -> Terminal<TestBackend> {
    let (columns, rows) = state.size;
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| view::draw(frame.buffer_mut(), view, state, theme)).unwrap();
    terminal
}

fn text(view: &View, state: &UiState) -> String {
    painted(view, state, Theme::new(false, false)).backend().to_string()
}

/// Presses keys, with time for each dialog to settle.
fn press(state: &mut UiState, view: &Arc<View>, keys: &[KeyCode]) {
    for code in keys {
        update(state, view, Msg::Key(KeyEvent::new(*code, KeyModifiers::NONE)));
    }
}

fn scene(name: &str, view: View, keys: &[KeyCode]) {
    let view = Arc::new(view);
    for (columns, rows) in [(80, 24), (200, 60)] {
        let mut state = fixture::state();
        state.size = (columns, rows);
        update(&mut state, &view, Msg::ViewChanged);
        press(&mut state, &view, keys);
        insta::assert_snapshot!(format!("{name}_{columns}x{rows}"), text(&view, &state));
    }
}

#[test]
fn reading() {
    let view = Arc::new(fixture::reading());
    for (columns, rows) in [(80, 24), (200, 60)] {
        let state = UiState::new(&fixture::options(), fixture::now(), (columns, rows));
        insta::assert_snapshot!(format!("reading_{columns}x{rows}"), text(&view, &state));
    }
}

#[test]
fn stepping() {
    scene("stepping", fixture::stepping(), &[]);
}

#[test]
fn draining() {
    scene("draining", fixture::draining(), &[]);
}

#[test]
fn draining_in_the_new_architecture() {
    scene("draining_new", fixture::draining_new(), &[]);
}

#[test]
fn drained_and_waiting() {
    scene("drained", fixture::drained(), &[]);
}

#[test]
fn a_drain_lost_with_its_coordinator_in_a_pause() {
    scene("drain_lost", fixture::drain_lost(), &[]);
}

#[test]
fn draining_at_sizes_between() {
    for (columns, rows) in [(60, 15), (80, 50), (120, 40)] {
        let mut state = fixture::state();
        state.size = (columns, rows);
        insta::assert_snapshot!(format!("draining_{columns}x{rows}"), text(&fixture::draining(), &state));
    }
}

#[test]
fn question() {
    scene("question", fixture::question(), &[]);
}

#[test]
fn abort_dialog() {
    scene("abort_dialog", fixture::draining(), &[KeyCode::Char('x')]);
}

#[test]
fn force_dialog() {
    let keys: Vec<_> = "T127.0.0.1:8302 17".chars().map(KeyCode::Char).chain([KeyCode::Enter]).collect();
    let reason = "the sink of dwh is gone".chars().map(KeyCode::Char);
    scene("force_dialog", fixture::question(), &keys.into_iter().chain(reason).collect::<Vec<_>>());
}

#[test]
fn leave_dialog() {
    scene("leave_dialog", fixture::draining(), &[KeyCode::Char('q')]);
}

#[test]
fn aborted() {
    scene("aborted", fixture::aborted(), &[]);
}

#[test]
fn capture_detail() {
    scene("capture_detail", fixture::stepping(), &[KeyCode::Home, KeyCode::Enter]);
}

#[test]
fn help() {
    scene("help", fixture::stepping(), &[KeyCode::Char('?')]);
}

#[test]
fn ended() {
    scene("ended", fixture::ended(), &[]);
}

#[test]
fn watching() {
    scene("watching", fixture::watching(), &[]);
}

#[test]
fn refused_key() {
    scene("refused_key", fixture::draining(), &[KeyCode::Char('s')]);
}

fn cells(buf: &Buffer, row: u16) -> impl Iterator<Item = &Cell> {
    (0..buf.area.width).map(move |x| &buf[(x, row)])
}

#[test]
fn without_colour_the_selected_row_is_reversed_and_no_cell_has_a_colour() {
    let view = fixture::draining();
    let terminal = painted(&view, &fixture::state(), Theme::new(false, false));
    let buf = terminal.backend().buffer();
    let row = (0..buf.area.height)
        .find(|row| cells(buf, *row).map(Cell::symbol).collect::<String>().starts_with("│>"))
        .unwrap();
    assert!(cells(buf, row).skip(1).take(78).all(|cell| cell.modifier.contains(Modifier::REVERSED)));
    let plain = Cell::default();
    assert!(buf.content.iter().all(|cell| cell.fg == plain.fg && cell.bg == plain.bg));
}

#[test]
fn plain_characters_are_really_plain() {
    for view in [fixture::draining(), fixture::question(), fixture::ended(), fixture::watching()] {
        let mut state = fixture::state();
        state.size = (200, 60);
        let terminal = painted(&view, &state, Theme::new(true, true));
        for cell in &terminal.backend().buffer().content {
            assert!(cell.symbol().is_ascii(), "{:?}", cell.symbol());
        }
    }
}

#[test]
fn a_small_terminal_says_so_and_that_the_rollout_goes_on() {
    let mut state = fixture::state();
    state.size = (59, 14);
    let screen = text(&fixture::draining(), &state);
    assert!(screen.contains("terminal too small: 80x24 needed, the rollout continues"), "{screen}");
}

#[test]
fn at_80_by_24_nothing_that_must_be_seen_is_missing() {
    let state = fixture::state();
    let screen = text(&fixture::draining(), &state);
    for needed in [
        "SIMULATED",
        "v8.5.3 → v8.5.4",
        "drain 127.0.0.1:8302",
        "owner 127.0.0.1:8300",
        "draining",
        "23 of 40 moved",
        "2.1 tables/s",
        "about 22 s left",
        "owed: restart 127.0.0.1:8302",
        "pause",
        "abort",
        "help",
        "leave",
        "3 of 3 normal",
        "14:03:27",
    ] {
        assert!(screen.contains(needed), "{needed} is missing in\n{screen}");
    }
}

fn any_view() -> impl Strategy<Value = View> {
    prop_oneof![
        Just(fixture::reading()),
        Just(fixture::stepping()),
        Just(fixture::draining()),
        Just(fixture::question()),
        Just(fixture::aborted()),
        Just(fixture::ended()),
        Just(fixture::watching()),
    ]
}

fn any_key() -> impl Strategy<Value = KeyCode> {
    prop_oneof![
        prop::char::range(' ', '~').prop_map(KeyCode::Char),
        prop::sample::select(vec![
            KeyCode::Enter,
            KeyCode::Esc,
            KeyCode::Tab,
            KeyCode::BackTab,
            KeyCode::Up,
            KeyCode::Down,
            KeyCode::PageUp,
            KeyCode::PageDown,
            KeyCode::Home,
            KeyCode::End,
            KeyCode::Backspace,
            KeyCode::Char('?'),
            KeyCode::Char('x'),
            KeyCode::Char('q'),
        ]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_size_and_no_keys_break_a_frame(
        first in any_view(),
        then in any_view(),
        keys in prop::collection::vec(any_key(), 0..12),
        sizes in prop::collection::vec((1u16..220, 1u16..80), 1..4),
        is_ascii: bool,
    ) {
        let mut state = fixture::state();
        let (first, then) = (Arc::new(first), Arc::new(then));
        let half = keys.len() / 2;
        press(&mut state, &first, &keys[..half]);
        update(&mut state, &then, Msg::ViewChanged);
        press(&mut state, &then, &keys[half..]);
        for (columns, rows) in sizes {
            update(&mut state, &then, Msg::Resized(columns, rows));
            painted(&then, &state, Theme::new(true, is_ascii));
        }
    }
}

#[test]
fn a_pane_without_room_beside_a_question_is_shown_in_its_place_and_back() {
    let (mut state, view) = (fixture::state(), Arc::new(fixture::question()));
    press(&mut state, &view, &[KeyCode::BackTab]);
    let screen = text(&view, &state);
    assert!(screen.contains("Plan 4 of 20") && screen.contains("waiting for you") && screen.contains("r retry"));
    press(&mut state, &view, &[KeyCode::Tab]);
    assert!(text(&view, &state).contains("The drain has not moved"));
}

#[test]
fn text_from_servers_cannot_steer_the_terminal_or_shift_the_columns() {
    let mut view = fixture::draining();
    view.groups[0].captures[1].address = "表\u{1b}[2J表表:8301\n\u{7}👩‍👩‍👧".to_owned();
    view.plan[0].note = "e\u{301}\u{202e}tab\there".to_owned();
    let mut state = fixture::state();
    state.push_entry(fixture::now(), crate::rollout::event::Weight::Info, "a\u{1b}]0;x\u{7}\r\nb".to_owned());
    let terminal = painted(&view, &state, Theme::new(true, false));
    let buf = terminal.backend().buffer();
    assert!(buf.content.iter().all(|cell| !cell.symbol().chars().any(char::is_control)));
    // The frame of the captures pane stands straight on both sides.
    for row in 3..7 {
        assert_eq!((buf[(0, row)].symbol(), buf[(79, row)].symbol()), ("│", "│"), "row {row}");
    }
}
