//! The real binary in a real pseudo-terminal: what only a terminal shows.

#[cfg(test)]
mod second_person;
#[cfg(test)]
mod terminal;

#[cfg(test)]
mod tests {
    use crate::terminal::{Terminal, lose_the_terminal};

    const SMALL: (u16, u16) = (80, 24);

    fn demo(speed: &str, size: (u16, u16), env: &[(&str, &str)]) -> Terminal {
        let mut terminal = Terminal::start(&["demo", "--speed", speed], size, env);
        terminal.see("SIMULATED");
        terminal.see("s step");
        terminal
    }

    #[test]
    fn the_demo_opens_runs_a_phase_and_is_left() {
        let mut terminal = demo("20", SMALL, &[]);
        terminal.see("Captures 3 · 120 tables");
        terminal.press("s");
        terminal.see("draining");
        terminal.see("next: restart");
        terminal.press_until("q", "Leave tiroll?");
        // The harmless answer has the focus: Enter stays.
        terminal.until("the dialog closed", "\r", |screen| !screen.contains("Leave tiroll?"));
        terminal.press_until("q", "Leave tiroll?");
        terminal.until("it left", "l", |screen| screen.contains("The demo was left"));
        assert_eq!(terminal.end(), 0);
        assert!(terminal.is_given_back());
    }

    #[test]
    fn a_whole_upgrade_runs_through() {
        let mut terminal = demo("50", (200, 60), &[]);
        terminal.press("c");
        terminal.see("ENDED");
        terminal.see("done");
        terminal.press("q");
        assert_eq!(terminal.end(), 0);
    }

    #[test]
    fn an_abort_in_a_drain_says_what_is_left_and_recovers() {
        let mut terminal = demo("10", SMALL, &[]);
        terminal.press("s");
        terminal.see("draining");
        terminal.press_until("x", "Abort the rollout?");
        terminal.see("goes on draining");
        terminal.press_until("y", "Aborted:");
        terminal.see("R  recover");
        terminal.press("R");
        terminal.until("the recovery ended", "y", |screen| screen.contains("ENDED"));
        terminal.see("owed: nothing");
        terminal.press("q");
        assert_eq!(terminal.end(), 4);
        assert!(terminal.is_given_back());
    }

    #[test]
    fn help_opens_and_closes() {
        let mut terminal = demo("1", SMALL, &[]);
        terminal.press("?");
        terminal.see("run the next phase");
        terminal.press("\x1b");
        terminal.until("help closed", "", |screen| !screen.contains("╭ Help"));
        terminal.signal("TERM");
        terminal.end();
    }

    #[test]
    fn a_signal_gives_the_terminal_back() {
        for name in ["TERM", "HUP", "INT"] {
            let mut terminal = demo("1", SMALL, &[]);
            terminal.signal(name);
            assert_eq!(terminal.end(), 130, "SIG{name}");
            assert!(terminal.is_given_back(), "SIG{name}");
        }
    }

    #[test]
    fn a_lost_terminal_ends_the_program() {
        lose_the_terminal();
    }

    #[test]
    fn without_colour_the_selected_row_is_still_marked() {
        let terminal = demo("1", SMALL, &[("NO_COLOR", "1")]);
        assert!(terminal.row_is_inverse("│>"), "{}", terminal.screen());
        let raw = String::from_utf8_lossy(&terminal.raw).into_owned();
        for colour in ["\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m", "\x1b[38;5"] {
            assert!(!raw.contains(colour), "{colour:?} was written");
        }
    }

    #[test]
    fn a_terminal_may_become_tiny_and_large_again() {
        let mut terminal = demo("1", SMALL, &[]);
        terminal.resize(20, 5);
        terminal.see("small");
        terminal.resize(1, 1);
        terminal.resize(120, 40);
        terminal.see("s step");
        terminal.signal("TERM");
        terminal.end();
    }

    #[test]
    fn a_refusal_is_shown_and_its_exit_code_kept() {
        let mut terminal = Terminal::start(&["demo", "--scenario", "leftover"], SMALL, &[]);
        terminal.see("ENDED");
        terminal.see("refused, nothing was changed");
        terminal.press("q");
        assert_eq!(terminal.end(), 3);
    }
}
