//! The file system without a kernel: calls against a model, losses of power, a full device.

mod acl;
mod basic;
mod cleaning;
mod damage;
mod damaged_nodes;
mod memory;
mod model;
mod pairs;
mod power;
mod random;
mod reads;
mod rebuild;
mod removal;
mod repair;
mod space;
