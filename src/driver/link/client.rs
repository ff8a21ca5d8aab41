//! The side that attaches.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, LinesCodec};
use tokio_util::sync::CancellationToken;

use super::super::Started;
use super::super::clock::SystemClock;
use super::super::handle::{Handle, Order};
use super::socket;
use super::wire::{LONGEST_TO_CLIENT, PROTOCOL, Role, ToClient, ToRollout, write};
use crate::cluster::Timestamp;
use crate::rollout::command::{Permission, Who};
use crate::rollout::event::{Event, Weight};
use crate::rollout::view::{TableNames, View};

/// Facts that a reader may be behind: what a newcomer is told at once fits.
const EVENTS: usize = 4_096;
/// How long the rollout may take to say hello and show itself.
const HELLO: Duration = Duration::from_secs(10);

/// Why nobody could attach.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Nobody listens there.
    #[error("no program listens at {path}: {source}")]
    Nobody {
        /// The socket.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// It was refused, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The connection failed.
    #[error("the connection to the rollout failed: {0}")]
    Broken(#[from] io::Error),
    /// What came is not of this protocol.
    #[error("the rollout says something that this version does not understand: {0}")]
    NotUnderstood(String),
    /// Nothing came.
    #[error("the rollout did not answer within {} s", HELLO.as_secs())]
    Silent,
}

type Lines = FramedRead<OwnedReadHalf, LinesCodec>;

/// Attaches to the rollout behind this socket. What comes back is like a rollout of one's own, but that stopping it
/// ends the connection alone.
pub async fn attach(path: &Path, who: &Who, role: Role) -> Result<Started, LinkError> {
    let connected = socket::connect(path).await;
    let stream = connected.map_err(|source| LinkError::Nobody { path: path.display().to_string(), source })?;
    let (reader, mut writer) = stream.into_split();
    let mut lines = FramedRead::new(reader, LinesCodec::new_with_max_length(LONGEST_TO_CLIENT));
    let greeting = async {
        write(&mut writer, &ToRollout::Hello { protocol: PROTOCOL, who: who.clone(), role }).await?;
        greeted(&mut lines).await
    };
    let (now, names, view) = timeout(HELLO, greeting).await.unwrap_or(Err(LinkError::Silent))?;
    let (views, view) = watch::channel(Arc::new(view));
    let (events, first_events) = broadcast::channel(EVENTS);
    let (orders_in, orders) = mpsc::channel(16);
    // Whether the rollout is idle cannot be told from here; nobody who attaches waits for it.
    let (idle_in, idle) = watch::channel(true);
    let stop = CancellationToken::new();
    let clock = Arc::new(SystemClock::in_step_with(now));
    let handle = Handle::new(view, events.clone(), orders_in, idle, stop.clone(), clock);
    let reader = Reader { views, _idle: idle_in, events, names, handle: handle.clone(), waiting: BTreeMap::new() };
    let task = tokio::spawn(reader.run(lines, writer, orders, stop));
    Ok(Started { handle, events: first_events, task })
}

/// What comes first: a welcome, perhaps the names of tables, and a view.
async fn greeted(lines: &mut Lines) -> Result<(Timestamp, Arc<TableNames>, View), LinkError> {
    let mut time = None;
    let mut names = Arc::default();
    loop {
        match next(lines).await? {
            Some(ToClient::Welcome { now, .. }) => time = Some(now),
            Some(ToClient::Names(all)) => names = Arc::new(all),
            Some(ToClient::View(view)) => {
                let now = time.ok_or_else(|| LinkError::NotUnderstood("a view before a welcome".to_owned()))?;
                let view = View { table_names: Arc::clone(&names), ..*view };
                return Ok((now, names, view));
            }
            Some(ToClient::Refused { why }) => return Err(LinkError::Refused(why)),
            Some(_) => {}
            None => return Err(LinkError::Refused("the rollout has just ended, or takes nobody more".to_owned())),
        }
    }
}

/// The reader's ends of a rollout in another program.
struct Reader {
    views: watch::Sender<Arc<View>>,
    _idle: watch::Sender<bool>,
    events: broadcast::Sender<Event>,
    names: Arc<TableNames>,
    handle: Handle,
    /// Commands without an answer.
    waiting: BTreeMap<u64, oneshot::Sender<Permission>>,
}

/// A command was on its way when the connection ended.
const UNANSWERED: &str = "the connection ended before the answer came; it may have been taken";

impl Reader {
    /// Reads until the rollout, the connection or the reader ends; the last view.
    async fn run(
        mut self,
        mut lines: Lines,
        mut writer: OwnedWriteHalf,
        mut orders: mpsc::Receiver<Order>,
        stop: CancellationToken,
    ) -> Arc<View> {
        let mut id = 0;
        let lost = loop {
            tokio::select! {
                () = stop.cancelled() => break None,
                line = next(&mut lines) => match line {
                    Ok(Some(ToClient::Bye)) => break None,
                    Ok(Some(line)) => if let Err(lost) = self.take(line) { break Some(lost) },
                    Ok(None) => break Some("it ended without a word".to_owned()),
                    Err(error) => break Some(error.to_string()),
                },
                Some(order) = orders.recv() => {
                    id += 1;
                    self.waiting.insert(id, order.reply);
                    let line = ToRollout::Command { id, who: order.who, instruction: order.instruction };
                    match timeout(HELLO, write(&mut writer, &line)).await {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => break Some(error.to_string()),
                        Err(_) => break Some("it takes nothing any more".to_owned()),
                    }
                }
            }
        };
        if let Some(why) = lost {
            self.handle.note(Weight::Warning, format!("the connection to the rollout is lost: {why}"));
        }
        for (_, reply) in self.waiting {
            // Whoever asked may have gone.
            let _ = reply.send(Err(UNANSWERED.to_owned()));
        }
        Arc::clone(&self.views.borrow())
    }

    /// Takes a line in; `Err` says why nothing more comes.
    fn take(&mut self, line: ToClient) -> Result<(), String> {
        match line {
            ToClient::Names(names) => self.names = Arc::new(names),
            ToClient::View(view) => {
                let view = View { table_names: Arc::clone(&self.names), ..*view };
                self.views.send_replace(Arc::new(view));
            }
            ToClient::Event(event) => self.tell(event),
            ToClient::Missed(count) => {
                let text = format!("{count} events were not told: they came too fast");
                self.handle.note(Weight::Warning, text);
            }
            ToClient::Answer { id, permission } => {
                if let Some(reply) = self.waiting.remove(&id) {
                    // Whoever asked may have gone.
                    let _ = reply.send(permission);
                }
            }
            ToClient::Refused { why } => return Err(why),
            ToClient::Welcome { .. } | ToClient::Bye => {}
        }
        Ok(())
    }

    fn tell(&self, event: Event) {
        // Nobody listening is no error: the view says the same.
        let _ = self.events.send(event);
    }
}

async fn next(lines: &mut Lines) -> Result<Option<ToClient>, LinkError> {
    match lines.next().await {
        None => Ok(None),
        Some(Ok(line)) => {
            serde_json::from_str(&line).map(Some).map_err(|error| LinkError::NotUnderstood(error.to_string()))
        }
        Some(Err(error)) => Err(LinkError::Broken(io::Error::other(error))),
    }
}
