//! The server on real sockets, with devices in memory and in files.

mod clients;
mod hostile;
mod operate;
mod serve;
mod strict;
