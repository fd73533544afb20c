//! Clients of others: libmemcached's programs, pymemcache, and gomemcache.

use std::process::{Command, Output};

use prism_cache::protocol::Settings;
use prism_cacheserver::Engine;
use prism_testkit::skipped;

use crate::serve::{Running, options};

const PYTHON: &str = r#"
import sys
from pymemcache.client.base import Client
c = Client(('127.0.0.1', int(sys.argv[1])), default_noreply=False)
assert c.set('k', 'v') and c.get('k') == b'v' and not c.add('k', 'w')
many = {f'k{i}': str(i).encode() for i in range(500)}
assert c.set_many(many) == [] and c.get_many(list(many) + ['absent']) == many
value, version = c.gets('k')
assert c.cas('k', 'n', version) is True and c.cas('k', 'm', version) is False
assert c.set('n', '5') and c.incr('n', 3) == 8 and c.decr('n', 100) == 0
assert c.append('k', 'x') and c.prepend('k', 'y') and c.get('k') == b'ynx'
assert c.touch('k', 100) and c.delete('k') and c.get('k') is None and not c.delete('k')
assert c.version().startswith(b'1.6.45') and c.stats()[b'curr_items'] == 501
assert c.flush_all() and c.get('n') is None
"#;

fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    Command::new(program).args(arguments).output().ok()
}

#[test]
fn libmemcached_stores_and_reads_files() {
    if run("memccp", &["--version"]).is_none() {
        return skipped("the cache with libmemcached's programs", "libmemcached-tools");
    }
    let server = Running::start(options(None, Engine::Function), Settings::default());
    let servers = format!("--servers={}", server.address);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let bytes: Vec<u8> =
        (0..200_000_u32).map(|number| (number.wrapping_mul(number) >> 7) as u8).collect();
    std::fs::write(&file, &bytes).unwrap();
    let check = |program: &str, argument: &str, succeeds: bool| {
        let output = run(program, &[&servers, argument]).expect("it is installed with memccp");
        assert_eq!(output.status.success(), succeeds, "{program}: {output:?}");
        output.stdout
    };
    check("memccp", file.to_str().unwrap(), true);
    let read = check("memccat", "file", true);
    assert!(read.starts_with(&bytes), "{} bytes", read.len());
    check("memcexist", "file", true);
    assert_eq!(check("memcdump", "--tcp-nodelay", true), b"file\n");
    check("memcrm", "file", true);
    check("memcexist", "file", false);
    check("memcping", "--quiet", true);
    let stats = String::from_utf8(check("memcstat", "--quiet", true)).unwrap();
    assert!(stats.contains("cmd_get"), "{stats}");
    server.stop();
}

#[test]
fn pymemcache_agrees() {
    // Debian's package is for its own interpreter, which need not be the first in PATH.
    let has = |python: &&str| {
        run(python, &["-c", "import pymemcache"]).is_some_and(|output| output.status.success())
    };
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(has) else {
        return skipped("the cache with pymemcache", "python3-pymemcache");
    };
    let server = Running::start(options(None, Engine::Raw), Settings::default());
    let output = run(python, &["-c", PYTHON, &server.address.port().to_string()]).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    server.stop();
}

#[test]
fn gomemcache_agrees() {
    let has = |go: &&str| run(go, &["version"]).is_some_and(|output| output.status.success());
    let Some(go) = ["go", "/usr/local/go/bin/go"].into_iter().find(has) else {
        return skipped("the cache with gomemcache", "golang-go");
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("main.go", include_str!("../go/main.go")),
        ("go.mod", include_str!("../go/go.mod")),
        ("go.sum", include_str!("../go/go.sum")),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let client = folder.path().join("client");
    let mut build = Command::new(go);
    build.args(["build", "-o", client.to_str().unwrap(), "."]).current_dir(folder.path());
    let built = build.output().unwrap();
    if !built.status.success() {
        // The proxy of modules is not there, or Go is too old for the client.
        let why = String::from_utf8_lossy(&built.stderr);
        let why = why.lines().next().unwrap_or_default();
        return skipped(&format!("the cache with gomemcache: it cannot be built: {why}"), "");
    }
    let server = Running::start(options(None, Engine::Policy), Settings::default());
    let output = run(client.to_str().unwrap(), &[&server.address.to_string()]).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    server.stop();
}
