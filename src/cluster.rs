//! What a cluster is: plain data and total functions.
