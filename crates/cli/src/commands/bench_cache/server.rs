//! Server processes to be measured.

use std::net::TcpListener;
use std::path::Path;
use std::process::{self, Child, Stdio};
use std::time::Duration;

use prism_base::Nanos;
use prism_host::{clock, memory};

use super::CONNECTIONS;
use super::clients::{Clients, Command, Measured};
use crate::failure::Failure;

/// Seconds in which a server has to accept connections. It does so before it reads its items; a
/// busy machine may take long to start it.
const PATIENCE: f64 = 300.0;

/// A server, which is ended when this is dropped.
pub struct Process {
    name: &'static str,
    command: process::Command,
    child: Child,
    port: u16,
}

fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0");
    let port = listener.and_then(|listener| listener.local_addr()).map(|address| address.port());
    port.map_err(|error| Failure::Usage(format!("there is no free port: {error}")))
}

fn spawn(name: &str, command: &mut process::Command) -> Result<Child, Failure> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn();
    child.map_err(|error| Failure::Usage(format!("cannot start {name}: {error}")))
}

impl Process {
    /// Our server on a file, with the other options.
    pub fn ours(name: &'static str, device: &Path, options: &[String]) -> Result<Self, Failure> {
        let own = std::env::current_exe();
        let own = own.map_err(|error| Failure::Usage(format!("this program: {error}")))?;
        let port = free_port()?;
        let mut command = process::Command::new(own);
        command.args(["cache", "serve", "-p", &port.to_string(), "-I", "256k", "--device"]);
        command.arg(device).args(options);
        let child = spawn(name, &mut command)?;
        Ok(Self { name, command, child, port })
    }

    /// memcached with memory for this many bytes of items; `None` if it is not installed.
    pub fn memcached(bytes: u64) -> Result<Option<Self>, Failure> {
        let port = free_port()?;
        let name = "memcached, memory";
        let megabytes = ((bytes * 2) >> 20).max(64).to_string();
        let mut command = process::Command::new("memcached");
        command.args(["-u", "root", "-t", "1", "-p", &port.to_string(), "-m", &megabytes]);
        let child = spawn(name, &mut command).ok();
        Ok(child.map(|child| Self { name, command, child, port }))
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn is_ours(&self) -> bool {
        self.name.starts_with("prism")
    }

    /// Connects, when the server accepts connections.
    pub fn connect(&mut self, count: u32) -> Result<Clients, Failure> {
        let begin = clock::seconds();
        loop {
            match Clients::connect(self.port, count) {
                Ok(clients) => return Ok(clients),
                Err(error) => {
                    let has_ended = !matches!(self.child.try_wait(), Ok(None));
                    if has_ended || clock::seconds() - begin > PATIENCE {
                        return Err(self.ended(&error.to_string()));
                    }
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn ended(&self, why: &str) -> Failure {
        let name = self.name;
        Failure::Usage(format!("{name} does not serve ({why}): start it by hand to see why"))
    }

    /// Seconds of CPU time that the process has used.
    pub fn cpu(&self) -> Result<f64, Failure> {
        memory::cpu_of(self.child.id()).ok_or_else(|| self.ended("it is gone"))
    }

    /// Runs clients, and measures the CPU time of the server for each of their operations.
    pub fn measure(&mut self, command: &Command, time: Nanos) -> Result<Measured, Failure> {
        let mut clients = self.connect(CONNECTIONS)?;
        let cpu = self.cpu()?;
        let mut measured = clients.run(&[*command], time)?[0];
        measured.cpu_ns = (self.cpu()? - cpu) * 1e9 / measured.operations as f64;
        Ok(measured)
    }

    /// Bytes of memory that the process uses.
    pub fn memory(&self) -> Result<u64, Failure> {
        memory::held_by(self.child.id()).ok_or_else(|| self.ended("it is gone"))
    }

    /// Ends the process by SIGKILL and starts it again.
    pub fn restart(&mut self) -> Result<(), Failure> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map_err(|error| self.ended(&error.to_string()))?;
        self.child = spawn(self.name, &mut self.command)?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
