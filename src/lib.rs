//! # tiroll
//!
//! A terminal program that takes a `TiDB` cluster with `TiCDC` through a rolling upgrade, one phase at a time. This page
//! is the map of the house; the README says how the program is used.
//!
//! ```text
//!  operator keys ─► ui::update ──Command──►┐                        ┌─► exec   (sim, manual)
//!    frame ◄─ ui::view ◄── watch<View> ─── driver ── effects ───────┤
//!                          events ◄──────┘  │  ▲                    └─► api    (calls, once each)
//!                                           ▼  │ sweeps ◄── pollers ◄─ api ◄── servers, or sim over real HTTP
//!                                        rollout::Engine
//! ```
//!
//! The screen ([`ui`]) and the headless mode ([`cli`]) are two readers of one [`driver::handle::Handle`]. There is no
//! second path to the cluster, and a simulated cluster is spoken to over HTTP like any other. A second person's program
//! gets such a handle over a socket in the rollout's directory ([`driver::link`]).
//!
//! ## Rooms
//!
//! | room | its one job | knows nothing of |
//! |---|---|---|
//! | [`cluster`] | what a cluster is: ids, versions, observed values with their age, named failures, sweeps | everything else |
//! | [`rollout`] | the core: plan, phases, evidence, obligations, engine, events, read model | clocks, sockets, files, async, terminal |
//! | [`api`] | how to talk to `TiCDC`, `TiDB` and PD over one http layer | rollout, screen, simulator |
//! | [`journal`] | a rollout's durable record: append, fsync, lock, read back, list | rollout, api, driver, screen, simulator |
//! | [`exec`] | how a process is stopped, replaced, started | driver, screen |
//! | [`driver`] | the only async glue: pollers, calls, executors, engine; a handle with a view, events, commands | screen, command line, simulator |
//! | [`sim`] | a cluster in a box with wire types of its own, so that it can disagree with the clients | every other room |
//! | [`ui`] | the screen: state, update, view, keys, theme, terminal guard | servers, executors, simulator |
//! | [`cli`], [`crash`] | the composition root; what happens when the program itself fails | |
//!
//! Who may import whom is a table in `tests/it/architecture.rs`, and a test.
//!
//! ## What always holds
//!
//! - **Unknown is not empty.** A read that failed is a [`cluster::Failure`] with its reason; it never changes a number and
//!   never ends a phase. [`cluster::Observed`] keeps the last good value and says how old it is.
//! - **Accepted is not done.** A phase ends on what the servers show, judged in [`rollout::evidence`] and the machines
//!   under [`rollout::phase`]: never on an exit code, a single zero or a percentage.
//! - **A timeout is a question.** A deadline leads to a [`rollout::view::Question`] with choices, never to the next phase.
//! - **A debt is written before the act.** What is changed and must be changed back is an obligation
//!   ([`rollout::obligation`]); it is an event before its effect, shown until paid, and said on every way out.
//! - **Time is an argument.** [`cluster::Timestamp`] carries wall and monotonic time together; only [`driver::clock`] and
//!   the simulator's own clock read the machine's. Deadlines count the time a phase could act, so a pause eats none, and
//!   neither does a closed lid: after one the cluster is read again before anything is sent (`rollout::gap`).
//! - **What must survive is tracked.** The durable state ([`rollout::durable`]) tells every change of itself, and replaying
//!   them gives it again; what is sent stands in it before it is sent.
//! - **One call in flight.** Every effect has an id that its outcome names again; every mutating call is sent once, but
//!   for the drain request, which is also the only poll of a drain.
//! - **The screen is true.** The view is built from observations; stale figures carry their age; a frame costs what is
//!   visible.
//!
//! ## Where to put things
//!
//! - A new *phase*: a machine under [`rollout::phase`], its name in [`rollout::view::PhaseKind`], its place in
//!   [`rollout::plan`]. It looks at the picture and says stay, done, ask or back.
//! - A new *command*: [`rollout::command::Command`], when it may be given in the one table of [`rollout::permission`], what
//!   it does in [`rollout::control`] (in [`rollout::by_name`] if it wants a name and a reason), its key in the one list of
//!   `ui::keymap`; footer, help and README follow from table and list.
//! - A new *executor*: an implementation of [`exec::Executor`], wired in `cli::connect`.
//! - A new *fact about a server*: a function in [`api`], a named outcome in [`cluster`], a recording under
//!   `tests/fixtures/recorded`, and the same answer in [`sim`], written a second time.
//!
//! ## The two architectures of `TiCDC`
//!
//! Which one runs is found out for each node by two signals and kept in [`cluster::cdc::NodeStatus`]; nobody has to say.
//! They part ways in few places: [`cluster::cdc::LivenessReading`] (what a number means), `api::sweep` (who is asked for
//! tables), [`rollout::evidence`] (who witnesses that a capture is empty), [`rollout::phase::drain`] and
//! [`rollout::phase::restart`] (what a number of the drain call counts, and what happens when the coordinator changes),
//! [`rollout::plan`] and [`rollout::phase::verify`] (both kinds in one cluster). The rest only chooses words.
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
pub mod cluster;
pub mod crash;
pub mod driver;
pub mod exec;
pub mod journal;
pub mod rollout;
pub mod sim;
pub mod ui;
