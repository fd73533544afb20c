//! A log of records over a few blocks, for tables that have to survive power loss.
