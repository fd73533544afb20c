//! The sockets that options name: those of clients, and those for Prometheus.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use prism_cacheserver::{Listener, ServerError};

use super::Args;
use crate::failure::Failure;

/// The addresses of a name with a port.
fn resolve(option: &str, text: &str) -> Result<Vec<SocketAddr>, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{option} {text}: {why}; give ADDRESS:PORT"));
    let found = text.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
    let found: Vec<SocketAddr> = found.collect();
    if found.is_empty() { Err(wrong("no such address".to_owned())) } else { Ok(found) }
}

/// An address, and the option that names it.
type Named = (String, SocketAddr);

/// Opens the sockets of clients and those for Prometheus.
///
/// # Errors
/// [`Failure::Usage`] with the option and what helps.
pub fn open(args: &Args) -> Result<(Vec<Listener>, Vec<Listener>), Failure> {
    let clients = if args.socket.is_some() { Vec::new() } else { addresses(args)? };
    let metrics = metrics_addresses(args)?;
    refuse_duplicates(&[&clients[..], &metrics].concat())?;
    let tcp = |(option, address): &Named| {
        Listener::tcp(*address, args.backlog).map_err(|error| explain(option, &error))
    };
    let tcp = |addresses: &[Named]| addresses.iter().map(tcp).collect::<Result<Vec<_>, _>>();
    let mut listeners = tcp(&clients)?;
    if let Some(path) = &args.socket {
        let listener = Listener::unix(path, args.socket_mode, args.backlog);
        let option = format!("-s {}", path.display());
        listeners.push(listener.map_err(|error| explain(&option, &error))?);
    }
    Ok((listeners, tcp(&metrics)?))
}

fn metrics_addresses(args: &Args) -> Result<Vec<Named>, Failure> {
    let Some(text) = &args.metrics else { return Ok(Vec::new()) };
    let addresses = match text.parse::<u16>() {
        Ok(port) => vec![SocketAddr::from(([127, 0, 0, 1], port))],
        Err(_) => resolve("--metrics", text)?,
    };
    Ok(addresses.into_iter().map(|at| (format!("--metrics {text}"), at)).collect())
}

/// The addresses of clients.
fn addresses(args: &Args) -> Result<Vec<Named>, Failure> {
    let mut addresses = Vec::new();
    let mut add = |option: String, found: Vec<SocketAddr>| {
        addresses.extend(found.into_iter().map(|at| (option.clone(), at)));
    };
    for text in &args.listen {
        add(format!("--listen {text}"), resolve("--listen", text)?);
    }
    for text in args.address.iter().flat_map(|list| list.split(',')) {
        let found = match text.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, args.port)],
            Err(_) if text.contains(':') => resolve("-l", text)?,
            Err(_) => resolve("-l", &format!("{text}:{}", args.port))?,
        };
        add(format!("-l {text}"), found);
    }
    if addresses.is_empty() {
        let address = SocketAddr::from(([127, 0, 0, 1], args.port));
        addresses.push((format!("-p {}", args.port), address));
    }
    Ok(addresses)
}

/// Refuses an address that two options name. Port 0 is another one each time.
fn refuse_duplicates(addresses: &[Named]) -> Result<(), Failure> {
    for (number, (option, address)) in addresses.iter().enumerate() {
        let is_same = |(_, other): &&Named| other == address && address.port() != 0;
        // A name may resolve to one address twice.
        let other = addresses[..number].iter().find(is_same);
        if let Some((other, _)) = other {
            let what = format!("{option}: {other} names {address}, too; give one of them another");
            return Err(Failure::Usage(what));
        }
    }
    Ok(())
}

/// Why there is no socket, with the option that names it and what helps.
fn explain(option: &str, error: &ServerError) -> Failure {
    let kind = match error {
        ServerError::Io { source, .. } => source.kind(),
        _ => ErrorKind::Other,
    };
    let help = match kind {
        ErrorKind::AddrInUse if option.starts_with("-s") => {
            "; a server or another file is there: name another one, or remove it"
        }
        ErrorKind::AddrInUse => "; end the program that listens there, or give another port",
        ErrorKind::AddrNotAvailable => "; give an address of this machine",
        ErrorKind::PermissionDenied => "; give one that this user may use",
        ErrorKind::NotFound => "; make its folder first",
        ErrorKind::InvalidInput => "; give a shorter name",
        _ => "",
    };
    Failure::Usage(format!("{option}: {error}{help}"))
}
