//! The questions that a maintainer answers: tables per node and how many there are (contract section 1.13).
//!
//! The capture that is asked first looks the changefeed up through the `Host` header it was given, and goes on to the
//! maintainer from there.

use serde::Serialize;

use crate::sim::cdc::errors;
use crate::sim::cdc::route::FeedName;
use crate::sim::wire::Reply;
use crate::sim::world::{MaintainerView, World};

use super::List;

#[derive(Serialize)]
struct Node {
    node_id: String,
    table_ids: Vec<u64>,
}

#[derive(Serialize)]
struct DispatcherCount {
    count: usize,
}

/// `total` is the number of nodes, and a node without tables is not there (recorded/README 18, 30).
pub(super) fn tables(world: &mut World, feed: &FeedName, host: &str) -> Reply {
    let index = match maintained(world, feed, host, "tables") {
        Ok(index) => index,
        Err(refused) => return refused,
    };
    let Some(nodes) = world.dispatchers(index) else {
        return nobody(feed);
    };
    let items: Vec<Node> =
        nodes.into_iter().map(|it| Node { node_id: it.capture_id, table_ids: it.table_ids }).collect();
    Reply::compact(200, &List { total: items.len(), items })
}

/// How many dispatchers there are, the one of table id 0 included (recording cdc-new 40).
pub(super) fn count(world: &mut World, feed: &FeedName, host: &str) -> Reply {
    let index = match maintained(world, feed, host, "get_dispatcher_count") {
        Ok(index) => index,
        Err(refused) => return refused,
    };
    let Some(nodes) = world.dispatchers(index) else {
        return nobody(feed);
    };
    Reply::compact(200, &DispatcherCount { count: nodes.iter().map(|it| it.table_ids.len()).sum() })
}

fn maintained(world: &World, feed: &FeedName, host: &str, question: &str) -> Result<usize, Reply> {
    match world.maintainer_view(host, &feed.namespace, &feed.id) {
        MaintainerView::Answers(index) => Ok(index),
        MaintainerView::Unknown => Err(nobody(feed)),
        MaintainerView::Refuses(address) => {
            let id = &feed.id;
            let url = format!("http://{address}/api/v2/changefeeds/{id}/{question}");
            Err(errors::plain(500, &format!("Get \"{url}\": dial tcp {address}: connect: connection refused")))
        }
    }
}

/// The servers' own words (recording cdc-new 114).
fn nobody(feed: &FeedName) -> Reply {
    errors::plain(500, &format!("Can't not find maintainer for changefeed: {}", feed.id))
}
