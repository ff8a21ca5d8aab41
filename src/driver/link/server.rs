//! The side that runs the rollout.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::codec::{FramedRead, LinesCodec};
use tokio_util::sync::CancellationToken;

use super::super::handle::Handle;
use super::socket::Socket;
use super::wire::{LONGEST_TO_ROLLOUT, PROTOCOL, Role, ToClient, ToRollout, plain, write};
use crate::rollout::command::Permission;
use crate::rollout::event::{Event, Weight};
use crate::rollout::view::{TableNames, View};

/// Facts that a newcomer is told of.
const RECENT: usize = 500;
/// Facts that a client may be behind before it is told that it missed some.
const BEHIND: usize = 4_096;
/// How many may be attached at a time.
const CLIENTS: usize = 32;
/// How long a client may take to say who it is.
const HELLO: Duration = Duration::from_secs(5);
/// How long a client may take to take a line.
const LINE: Duration = Duration::from_secs(30);
/// Views go out no more often than this.
const VIEWS_APART: Duration = Duration::from_millis(100);
/// Commands of one client are taken no more often than this: the engine has other work.
const COMMANDS_APART: Duration = Duration::from_millis(50);
/// How long the last lines may take.
const LAST: Duration = Duration::from_secs(1);

/// A rollout that others can attach to.
pub struct Link {
    steering: watch::Receiver<usize>,
    close: CancellationToken,
    task: JoinHandle<()>,
}

impl Link {
    /// How many are attached who could answer a question.
    pub fn steering(&self) -> watch::Receiver<usize> {
        self.steering.clone()
    }

    /// Tells everybody the end, and removes the socket.
    pub async fn close(self) {
        self.close.cancel();
        // Whoever does not take the last lines in time learns of the end by the connection's.
        let _ = timeout(2 * LAST, self.task).await;
    }
}

/// Serves a rollout at this path as soon as the directory stands, which is when there is a plan. That it cannot be
/// served is a note among the events and changes nothing else.
pub fn serve(handle: Handle, path: PathBuf) -> Link {
    let (steering_in, steering) = watch::channel(0);
    let close = CancellationToken::new();
    let server = Server {
        events: handle.events(),
        handle,
        steering: Arc::new(steering_in),
        recent: VecDeque::new(),
        told: broadcast::channel(BEHIND).0,
        ended: CancellationToken::new(),
        clients: JoinSet::new(),
    };
    let task = tokio::spawn(server.run(path, close.clone()));
    Link { steering, close, task }
}

struct Server {
    handle: Handle,
    events: broadcast::Receiver<Event>,
    steering: Arc<watch::Sender<usize>>,
    /// The latest facts, for whoever comes; those after them come through `told`.
    recent: VecDeque<Event>,
    told: broadcast::Sender<Event>,
    ended: CancellationToken,
    clients: JoinSet<()>,
}

impl Server {
    async fn run(mut self, path: PathBuf, close: CancellationToken) {
        let mut views = self.handle.view();
        let mut socket = self.open(&path);
        let mut can_open = true;
        let mut has_events = true;
        loop {
            tokio::select! {
                () = close.cancelled() => break,
                event = self.events.recv(), if has_events => match event {
                    Ok(event) => self.keep(event),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => has_events = false,
                },
                stream = accept(socket.as_ref()) => {
                    if let Ok(stream) = stream && self.clients.len() < CLIENTS {
                        self.welcome(stream);
                    }
                }
                changed = views.changed(), if can_open && socket.is_none() => {
                    can_open = changed.is_ok();
                    if can_open {
                        socket = self.open(&path);
                        can_open = socket.is_none();
                    }
                }
                Some(_) = self.clients.join_next() => {}
            }
        }
        drop(socket);
        while let Ok(event) = self.events.try_recv() {
            self.keep(event);
        }
        self.ended.cancel();
        let clients = &mut self.clients;
        let all = async { while clients.join_next().await.is_some() {} };
        let _ = timeout(LAST, all).await;
    }

    /// Opens the socket if its directory stands.
    fn open(&self, path: &Path) -> Option<Socket> {
        if !path.parent().is_some_and(Path::is_dir) {
            return None;
        }
        let opened = Socket::bind(path);
        if let Err(error) = &opened {
            let text = format!("nobody can attach to this rollout: {}: {error}", path.display());
            self.handle.note(Weight::Warning, text);
        }
        opened.ok()
    }

    fn keep(&mut self, event: Event) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(event.clone());
        // Nobody may be attached.
        let _ = self.told.send(event);
    }

    fn welcome(&mut self, stream: UnixStream) {
        let client = Client {
            handle: self.handle.clone(),
            steering: Arc::clone(&self.steering),
            recent: self.recent.iter().cloned().collect(),
            events: self.told.subscribe(),
            ended: self.ended.clone(),
        };
        self.clients.spawn(client.run(stream));
    }
}

/// The next one who connects, if there is a socket to connect to.
async fn accept(socket: Option<&Socket>) -> std::io::Result<UnixStream> {
    match socket {
        Some(socket) => {
            let stream = socket.accept().await;
            if stream.is_err() {
                // Out of descriptors it would fail again at once, and again.
                sleep(COMMANDS_APART).await;
            }
            stream
        }
        None => std::future::pending().await,
    }
}

/// One who is attached.
struct Client {
    handle: Handle,
    steering: Arc<watch::Sender<usize>>,
    recent: Vec<Event>,
    events: broadcast::Receiver<Event>,
    ended: CancellationToken,
}

/// Counts one who could answer a question, as long as it lives.
struct Counted(Arc<watch::Sender<usize>>);

impl Counted {
    fn new(steering: &Arc<watch::Sender<usize>>) -> Self {
        steering.send_modify(|count| *count += 1);
        Self(Arc::clone(steering))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

type Lines = FramedRead<OwnedReadHalf, LinesCodec>;

impl Client {
    async fn run(mut self, stream: UnixStream) {
        let (reader, mut writer) = stream.into_split();
        let mut lines = FramedRead::new(reader, LinesCodec::new_with_max_length(LONGEST_TO_ROLLOUT));
        let (who, role) = match timeout(HELLO, hello(&mut lines)).await {
            Ok(Ok(Some(hello))) => hello,
            Ok(Ok(None)) => return,
            Ok(Err(why)) => return refuse(&mut writer, why).await,
            Err(_) => return refuse(&mut writer, "nobody said hello".to_owned()).await,
        };
        let _counted = (role == Role::Steers).then(|| Counted::new(&self.steering));
        let name = &plain(&who).name;
        let is_screen = role != Role::Tells;
        if is_screen {
            let how = if role == Role::Looks { ", to look only" } else { "" };
            self.handle.note(Weight::Info, format!("{name} attached{how}"));
        }
        let (answers_in, answers) = mpsc::channel(1);
        let handle = self.handle.clone();
        let is_obeying = AtomicBool::new(false);
        let end = tokio::select! {
            end = obey(&mut lines, &handle, role, &answers_in, &is_obeying) => end,
            _ = self.tell(&mut writer, answers, &is_obeying) => Ok(()),
        };
        if let Err(why) = end {
            refuse(&mut writer, why).await;
        }
        if is_screen {
            handle.note(Weight::Info, format!("{name} left; the rollout goes on"));
        }
    }

    /// Tells what there is to tell, until the end or until nobody takes it.
    async fn tell(
        &mut self,
        writer: &mut OwnedWriteHalf,
        mut answers: mpsc::Receiver<Answer>,
        is_obeying: &AtomicBool,
    ) -> std::io::Result<()> {
        let now = self.handle.clock().now();
        let program = env!("CARGO_PKG_VERSION").to_owned();
        put(writer, &ToClient::Welcome { protocol: PROTOCOL, program, now }).await?;
        let mut views = Views { from: self.handle.view(), names: Arc::default() };
        views.put(writer).await?;
        for event in std::mem::take(&mut self.recent) {
            put(writer, &ToClient::Event(event)).await?;
        }
        let mut tick = interval(VIEWS_APART);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut has_views, mut is_due) = (true, false);
        loop {
            tokio::select! {
                () = self.ended.cancelled() => break,
                Some((id, permission)) = answers.recv() => {
                    // What a command has done is seen before its answer is.
                    views.put(writer).await?;
                    put(writer, &ToClient::Answer { id, permission }).await?;
                }
                event = self.events.recv() => match event {
                    Ok(event) => put(writer, &ToClient::Event(event)).await?,
                    Err(RecvError::Lagged(count)) => put(writer, &ToClient::Missed(count)).await?,
                    Err(RecvError::Closed) => break,
                },
                changed = views.from.changed(), if has_views && !is_due => {
                    has_views = changed.is_ok();
                    is_due = true;
                }
                _ = tick.tick(), if is_due => {
                    is_due = false;
                    views.put(writer).await?;
                }
            }
        }
        // The command that ended the rollout has its answer too.
        let mut last = answers.try_recv().ok();
        if last.is_none() && is_obeying.load(Ordering::Relaxed) {
            last = timeout(LAST, answers.recv()).await.ok().flatten();
        }
        loop {
            match self.events.try_recv() {
                Ok(event) => put(writer, &ToClient::Event(event)).await?,
                Err(TryRecvError::Lagged(count)) => put(writer, &ToClient::Missed(count)).await?,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        views.put(writer).await?;
        if let Some((id, permission)) = last {
            put(writer, &ToClient::Answer { id, permission }).await?;
        }
        put(writer, &ToClient::Bye).await
    }
}

/// The views of a rollout on their way to a client.
struct Views {
    from: watch::Receiver<Arc<View>>,
    /// The names of tables that the client has.
    names: Arc<TableNames>,
}

impl Views {
    /// Writes the newest view, and the names of tables if they are others.
    async fn put(&mut self, writer: &mut OwnedWriteHalf) -> std::io::Result<()> {
        let view = Arc::clone(&self.from.borrow_and_update());
        if !Arc::ptr_eq(&view.table_names, &self.names) && view.table_names != self.names {
            self.names = Arc::clone(&view.table_names);
            put(writer, &ToClient::Names(TableNames::clone(&self.names))).await?;
        }
        let view = View { table_names: Arc::default(), ..View::clone(&view) };
        put(writer, &ToClient::View(Box::new(view))).await
    }
}

type Answer = (u64, Permission);

/// Takes the first line; `None` if there is none, `Err` says why it is not taken.
async fn hello(lines: &mut Lines) -> Result<Option<(crate::rollout::command::Who, Role)>, String> {
    let Some(line) = next(lines).await? else { return Ok(None) };
    match line {
        ToRollout::Hello { protocol: PROTOCOL, who, role } => Ok(Some((who, role))),
        ToRollout::Hello { protocol, .. } => {
            let program = env!("CARGO_PKG_VERSION");
            Err(format!(
                "the rollout is run by tiroll {program}, which speaks protocol {PROTOCOL} and not {protocol}; attach with that version"
            ))
        }
        ToRollout::Command { .. } => Err("a hello comes first".to_owned()),
    }
}

/// Takes commands, one at a time, until nothing more comes; `Err` says why no more is taken.
async fn obey(
    lines: &mut Lines,
    handle: &Handle,
    role: Role,
    answers: &mpsc::Sender<Answer>,
    is_obeying: &AtomicBool,
) -> Result<(), String> {
    while let Some(line) = next(lines).await? {
        let ToRollout::Command { id, who, instruction } = line else { return Err("one hello is enough".to_owned()) };
        is_obeying.store(true, Ordering::Relaxed);
        let permission = match role {
            Role::Looks => Err("attached to look only".to_owned()),
            Role::Steers | Role::Tells => handle.command(&plain(&who), instruction).await,
        };
        if answers.send((id, permission)).await.is_err() {
            break;
        }
        is_obeying.store(false, Ordering::Relaxed);
        sleep(COMMANDS_APART).await;
    }
    Ok(())
}

async fn next(lines: &mut Lines) -> Result<Option<ToRollout>, String> {
    match lines.next().await {
        None => Ok(None),
        Some(Ok(line)) => match serde_json::from_str(&line) {
            Ok(line) => Ok(Some(line)),
            Err(error) => Err(format!("that is no line of this protocol: {error}")),
        },
        Some(Err(error)) => Err(error.to_string()),
    }
}

async fn put(writer: &mut OwnedWriteHalf, line: &ToClient) -> std::io::Result<()> {
    timeout(LINE, write(writer, line)).await?
}

/// Says why nothing more comes; whoever does not listen is not waited for.
async fn refuse(writer: &mut OwnedWriteHalf, why: String) {
    let _ = timeout(LAST, write(writer, &ToClient::Refused { why })).await;
}
