use std::sync::Mutex;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use futures::channel::mpsc::{UnboundedSender, unbounded};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::cluster::{Clock, Timestamp};
use crate::driver::handle::Order;
use crate::rollout::event::{Fact, Weight};
use crate::ui::fixture;

/// The runtime's own clock, which tests pause.
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        fixture::now().plus(self.0.elapsed())
    }
}

#[derive(Default)]
struct Seen {
    frames: usize,
    screen: String,
    rings: usize,
    title: String,
    is_lost: bool,
}

/// A terminal in memory.
struct Fake {
    terminal: Terminal<TestBackend>,
    seen: Arc<Mutex<Seen>>,
}

impl Surface for Fake {
    fn size(&self) -> io::Result<(u16, u16)> {
        Ok((80, 24))
    }

    fn draw(&mut self, paint: &mut dyn FnMut(&mut Buffer)) -> io::Result<()> {
        let mut seen = self.seen.lock().unwrap();
        if seen.is_lost {
            return Err(io::Error::other("gone"));
        }
        self.terminal.draw(|frame| paint(frame.buffer_mut())).unwrap();
        seen.frames += 1;
        seen.screen = self.terminal.backend().to_string();
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn title(&mut self, title: &str) -> io::Result<()> {
        title.clone_into(&mut self.seen.lock().unwrap().title);
        Ok(())
    }

    fn ring(&mut self) -> io::Result<()> {
        self.seen.lock().unwrap().rings += 1;
        Ok(())
    }

    fn suspend(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A loop with all its ends in the test's hands.
struct Bench {
    seen: Arc<Mutex<Seen>>,
    input: UnboundedSender<io::Result<Input>>,
    signals: UnboundedSender<&'static str>,
    views: watch::Sender<Arc<View>>,
    events: broadcast::Sender<Event>,
    orders: mpsc::Receiver<Order>,
    task: JoinHandle<Leave>,
}

fn bench(view: View) -> Bench {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let (input, input_end) = unbounded();
    let (signals, signals_end) = unbounded();
    let (views, view_end) = watch::channel(Arc::new(view));
    let (events, first_events) = broadcast::channel(16);
    let (order_end, orders) = mpsc::channel(4);
    let (_, idle) = watch::channel(true);
    let clock = Arc::new(RuntimeClock(Instant::now()));
    let handle = Handle::new(view_end, events.clone(), order_end, idle, CancellationToken::new(), clock);
    let mut surface = Fake { terminal: Terminal::new(TestBackend::new(80, 24)).unwrap(), seen: Arc::clone(&seen) };
    let task = tokio::spawn(async move {
        run(&mut surface, input_end, signals_end, &handle, first_events, &fixture::options()).await
    });
    Bench { seen, input, signals, views, events, orders, task }
}

impl Bench {
    fn press(&self, code: KeyCode) {
        self.input.unbounded_send(Ok(Input::Key(KeyEvent::new(code, KeyModifiers::NONE)))).unwrap();
    }

    fn frames(&self) -> usize {
        self.seen.lock().unwrap().frames
    }

    fn screen(&self) -> String {
        self.seen.lock().unwrap().screen.clone()
    }
}

/// With the clock paused, this lets everything run that can run before so much time has passed.
async fn pass(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[tokio::test(start_paused = true)]
async fn the_first_frame_comes_at_once_and_idle_means_one_a_second() {
    let bench = bench(fixture::reading());
    pass(5).await;
    assert_eq!(bench.frames(), 1);
    assert!(bench.screen().contains("reading the cluster"));
    pass(10_000).await;
    let frames = bench.frames();
    assert!((10..=12).contains(&frames), "{frames} frames in ten idle seconds");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_events_makes_few_frames_and_says_what_was_missed() {
    let bench = bench(fixture::stepping());
    pass(5).await;
    let before = bench.frames();
    for n in 0..100 {
        let fact = Fact::Noted { weight: Weight::Info, text: format!("note {n}") };
        bench.events.send(Event { at: fixture::now(), fact }).unwrap();
    }
    pass(60).await;
    assert!(bench.frames() - before <= 2, "{} frames", bench.frames() - before);
    assert!(bench.screen().contains("note 99"));
    bench.press(KeyCode::Tab);
    bench.press(KeyCode::Tab);
    bench.press(KeyCode::Tab);
    bench.press(KeyCode::Home);
    pass(60).await;
    assert!(bench.screen().contains("84 events not shown"), "{}", bench.screen());
}

#[tokio::test(start_paused = true)]
async fn a_command_goes_out_with_its_giver_and_a_refusal_comes_back() {
    let mut bench = bench(fixture::stepping());
    bench.press(KeyCode::Char('s'));
    let order = bench.orders.recv().await.unwrap();
    assert_eq!((order.instruction, order.who.name.as_str()), (Command::Step.into(), "op@desk"));
    order.reply.send(Err("the owner has only just begun".to_owned())).unwrap();
    pass(50).await;
    assert!(bench.screen().contains("step refused: the owner has only just begun"), "{}", bench.screen());
}

#[tokio::test(start_paused = true)]
async fn pause_and_leave_waits_for_the_engines_word() {
    let mut bench = bench(fixture::draining());
    bench.press(KeyCode::Char('q'));
    pass(400).await;
    bench.press(KeyCode::Char('p'));
    let order = bench.orders.recv().await.unwrap();
    assert_eq!(order.instruction, Command::Pause.into());
    order.reply.send(Ok(())).unwrap();
    assert_eq!(bench.task.await.unwrap(), Leave::PausedAndLeft);
}

#[tokio::test(start_paused = true)]
async fn signals_a_lost_terminal_and_the_end_of_input_end_it_within_a_second() {
    let by_signal = bench(fixture::draining());
    by_signal.signals.unbounded_send("SIGTERM").unwrap();
    assert_eq!(by_signal.task.await.unwrap(), Leave::Signal("SIGTERM"));

    let by_end = bench(fixture::draining());
    drop(by_end.input);
    assert_eq!(by_end.task.await.unwrap(), Leave::TerminalLost);

    let by_write = bench(fixture::draining());
    pass(5).await;
    by_write.seen.lock().unwrap().is_lost = true;
    let start = Instant::now();
    assert_eq!(by_write.task.await.unwrap(), Leave::TerminalLost);
    assert!(start.elapsed() <= Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_question_rings_and_says_so_in_the_title() {
    let bench = bench(fixture::draining());
    pass(5).await;
    assert_eq!(bench.seen.lock().unwrap().title, "tiroll (SIMULATED): STEP drain 127.0.0.1:8302");
    bench.views.send(Arc::new(fixture::question())).unwrap();
    pass(50).await;
    let seen = bench.seen.lock().unwrap();
    assert_eq!(seen.rings, 1);
    assert_eq!(seen.title, "tiroll (SIMULATED): ▮▮ waiting for you");
    assert!(seen.screen.contains("The drain has not moved"));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_gone_is_said_and_left_without_a_question() {
    let bench = bench(fixture::draining());
    pass(5).await;
    drop(bench.views);
    pass(50).await;
    assert!(bench.seen.lock().unwrap().screen.contains("STOPPED"));
    bench.input.unbounded_send(Ok(Input::Key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE)))).unwrap();
    assert_eq!(bench.task.await.unwrap(), Leave::Left);
}
