//! What happens when the program itself fails: the terminal first, then the report.
//!
//! The order is fixed: log, restore, print. A report printed into the alternate screen is gone a moment later, and one
//! printed in raw mode climbs down the screen in stairs. Panics in tasks take the same way, and end the screen.

use std::io::Write;
use std::panic::PanicHookInfo;

use color_eyre::config::{HookBuilder, Theme};

use crate::ui::terminal;

/// Takes note of a panic before anything is printed.
pub type Log = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// Installs the hooks for errors and panics. Reports are coloured only if `has_colour`.
pub fn install(has_colour: bool, log: Option<Log>) -> color_eyre::Result<()> {
    let theme = if has_colour { Theme::dark() } else { Theme::new() };
    let builder = HookBuilder::default().theme(theme).display_env_section(false).panic_section(
        "This is a fault of tiroll. The servers go on with what they were doing; look at the cluster with \
         `tiroll status` before anything else.",
    );
    let (panics, errors) = builder.into_hooks();
    errors.install()?;
    std::panic::set_hook(Box::new(move |info| {
        if let Some(log) = &log {
            log(info);
        }
        terminal::restore_for_panic();
        // Standard error may be gone with the terminal; there is nobody left to tell then.
        let _ = writeln!(std::io::stderr(), "{}", panics.panic_report(info));
    }));
    Ok(())
}
