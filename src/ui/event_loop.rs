//! The loop: waits for signals, keys, views, events and the moment of the next frame, in this order of importance.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::Event as Input;
use futures::stream::FuturesUnordered;
use futures::{Stream, StreamExt};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{Instant, sleep_until};

use crate::driver::handle::Handle;
use crate::rollout::command::{Command, Instruction, Permission};
use crate::rollout::event::Event;
use crate::rollout::view::{Mode, View};

use super::frame::FrameScheduler;
use super::message::{Msg, UiEffect};
use super::state::UiState;
use super::terminal::{self, Surface};
use super::theme::Theme;
use super::update::{calls_for_person, update};
use super::{Leave, Options, view};

/// Facts taken in one go: a flood of them must not hold back a frame or a key.
const BATCH: usize = 256;

/// An answer that is on its way.
type Answer = Pin<Box<dyn Future<Output = (Purpose, Permission)> + Send>>;

/// Why a command was given.
#[derive(Clone, Copy)]
enum Purpose {
    /// For itself.
    Tell(Command),
    /// Before leaving.
    Leave,
}

/// What the loop holds besides the state.
struct Loop<'a, S> {
    surface: &'a mut S,
    handle: &'a Handle,
    options: &'a Options,
    theme: Theme,
    state: UiState,
    view: Arc<View>,
    answers: FuturesUnordered<Answer>,
    frames: FrameScheduler,
    start: Instant,
    title: String,
    leave: Option<Leave>,
}

/// Runs until something says how it was left.
pub(super) async fn run<S: Surface>(
    surface: &mut S,
    mut input: impl Stream<Item = io::Result<Input>> + Unpin,
    mut signals: impl Stream<Item = &'static str> + Unpin,
    handle: &Handle,
    mut events: Receiver<Event>,
    options: &Options,
) -> Leave {
    let mut views = handle.view();
    let view = Arc::clone(&views.borrow_and_update());
    let size = surface.size().unwrap_or((80, 24));
    let state = UiState::new(options, handle.clock().now(), size);
    let mut it = Loop {
        surface,
        handle,
        options,
        theme: Theme::new(!options.no_color, options.ascii),
        state,
        view,
        answers: FuturesUnordered::new(),
        frames: FrameScheduler::default(),
        start: Instant::now(),
        title: String::new(),
        leave: None,
    };
    let mut has_views = true;
    let mut has_events = true;
    it.take(Msg::ViewChanged);
    loop {
        if it.frames.is_due(it.start.elapsed()) {
            it.draw();
        }
        if let Some(leave) = it.leave {
            return leave;
        }
        let deadline = it.frames.deadline().map(|at| it.start + at);
        let frame = async {
            match deadline {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(name) = signals.next() => return Leave::Signal(name),
            () = terminal::crashed() => return Leave::Crashed,
            event = input.next() => match event {
                Some(Ok(event)) => it.input(event),
                Some(Err(_)) | None => return Leave::TerminalLost,
            },
            changed = views.changed(), if has_views => {
                if changed.is_ok() {
                    it.view = Arc::clone(&views.borrow_and_update());
                    it.take(Msg::ViewChanged);
                } else {
                    has_views = false;
                    it.take(Msg::EngineGone);
                }
            }
            Some((purpose, permission)) = it.answers.next(), if !it.answers.is_empty() => match purpose {
                Purpose::Tell(command) => it.take(Msg::Answered(command, permission)),
                // Refused or not: whoever wants to leave is not held back by the engine's mood.
                Purpose::Leave => it.leave = Some(Leave::PausedAndLeft),
            },
            event = events.recv(), if has_events => {
                match event {
                    Ok(event) => it.take(Msg::Event(event)),
                    Err(RecvError::Lagged(count)) => it.take(Msg::Missed(count)),
                    Err(RecvError::Closed) => has_events = false,
                }
                for _ in 0..BATCH {
                    match events.try_recv() {
                        Ok(event) => it.take(Msg::Event(event)),
                        Err(TryRecvError::Lagged(count)) => it.take(Msg::Missed(count)),
                        Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                    }
                }
            }
            () = frame => {}
        }
    }
}

impl<S: Surface> Loop<'_, S> {
    fn input(&mut self, event: Input) {
        match event {
            Input::Key(key) => self.take(Msg::Key(key)),
            Input::Paste(text) => self.take(Msg::Paste(text)),
            Input::Resize(columns, rows) => self.take(Msg::Resized(columns, rows)),
            Input::FocusGained | Input::FocusLost | Input::Mouse(_) => {}
        }
    }

    fn take(&mut self, msg: Msg) {
        self.state.now = self.handle.clock().now();
        for effect in update(&mut self.state, &self.view, msg) {
            self.perform(effect);
        }
        self.retitle();
        self.frames.request(self.start.elapsed());
    }

    fn perform(&mut self, effect: UiEffect) {
        let done = match effect {
            UiEffect::Tell(command) => {
                self.order(command.into(), Purpose::Tell(command));
                Ok(())
            }
            UiEffect::ByName(instruction) => {
                let command = instruction.command;
                self.order(instruction, Purpose::Tell(command));
                Ok(())
            }
            UiEffect::PauseAndLeave => {
                self.order(Command::Pause.into(), Purpose::Leave);
                Ok(())
            }
            UiEffect::Quit(leave) => {
                self.leave = Some(leave);
                Ok(())
            }
            UiEffect::Redraw => self.surface.clear(),
            UiEffect::Suspend => self.surface.suspend(),
            UiEffect::Ring => self.surface.ring(),
        };
        self.lost_if(&done);
    }

    fn order(&self, instruction: Instruction, purpose: Purpose) {
        let (handle, who) = (self.handle.clone(), self.options.who.clone());
        self.answers.push(Box::pin(async move { (purpose, handle.command(&who, instruction).await) }));
    }

    fn lost_if(&mut self, done: &io::Result<()>) {
        if done.is_err() && self.leave.is_none() {
            self.leave = Some(if terminal::has_crashed() { Leave::Crashed } else { Leave::TerminalLost });
        }
    }

    fn retitle(&mut self) {
        let title = title(&self.view);
        if title != self.title {
            let done = self.surface.title(&title);
            self.title = title;
            self.lost_if(&done);
        }
    }

    fn draw(&mut self) {
        self.state.now = self.handle.clock().now();
        let (state, shown, theme) = (&self.state, &self.view, self.theme);
        let done = self.surface.draw(&mut |buf| view::draw(buf, shown, state, theme));
        self.lost_if(&done);
        let now = self.start.elapsed();
        self.frames.drawn(now);
        // The clock in the header reads differently at the next full second; this is also what notices a lost terminal
        // when nothing else happens.
        let into = u64::try_from(self.state.now.wall_ms.rem_euclid(1000)).unwrap_or(0);
        self.frames.request_at(now + Duration::from_millis(1000 - into));
    }
}

/// The window's title: what a person sees of a tab in the background.
fn title(view: &View) -> String {
    let simulated = if view.title.is_simulated { " (SIMULATED)" } else { "" };
    let what = match (&view.mode, view.current()) {
        (Mode::Ended(ending), _) => format!("ended: {}", super::status::of_outcome(ending.outcome).word),
        (_, _) if calls_for_person(view) => "▮▮ waiting for you".to_owned(),
        (Mode::Stepping | Mode::Paused, Some((step, phase))) => {
            format!("▮▮ {} {}", phase.kind.word(), step.target)
        }
        (mode, Some((step, phase))) => format!("{} {} {}", mode.word(), phase.kind.word(), step.target),
        (mode, None) => mode.word().to_owned(),
    };
    let line = format!("tiroll{simulated}: {what}");
    super::widgets::text::clean(&line).into_owned()
}

#[cfg(test)]
mod tests;
