//! Options of a mount, from `-o`.

use fuser::{MountOption, SessionACL};
use prism_fs::{Access, Config, Deferral, Distance, Victim};

/// Threads that take requests of the kernel.
const THREADS: usize = 8;
/// The type that the kernel lists is `fuse.` and this, for findmnt(8), df(1) and umount(8). As the
/// plain option fuser has for it, only a mount by fusermount3 would have it.
pub(crate) const TYPE: &str = "prismfs";

/// What is durable when a call returns, without an fsync. The kernel syncs after each write of a
/// mount with `sync`; all else it leaves to the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AtOnce {
    /// Nothing.
    Nothing,
    /// Names: of what is made, linked, renamed and removed.
    Names,
    /// Names, content and attributes.
    All,
}

/// What mount(8) and fstab add, and what is the case anyway.
fn is_the_case(name: &str) -> bool {
    const NAMES: [&str; 18] = [
        "defaults",
        "auto",
        "noauto",
        "nofail",
        "_netdev",
        "user",
        "users",
        "owner",
        "group",
        "allow_other",
        "default_permissions",
        "nodiratime",
        "nostrictatime",
        "noiversion",
        "nomand",
        "user_xattr",
        "acl",
        "comment",
    ];
    NAMES.contains(&name) || name.starts_with("x-")
}

/// Why an option of other file systems is refused.
fn not_possible(name: &str) -> String {
    let why = match name {
        "strictatime" => "reads from the kernel's cache do not come here; there is relatime",
        "diratime" => "folders have no time of the last access",
        "iversion" => "the kernel has no versions of files by FUSE",
        _ => "the kernel has no mandatory locks any more",
    };
    format!("-o {name}: not possible: {why}")
}

/// Options of a mount, from `-o`.
#[derive(Clone, Debug, PartialEq)]
pub struct MountOptions {
    /// Settings of the file system.
    pub config: Config,
    pub(crate) access: Access,
    /// Whether the kernel collects writes.
    pub(crate) writeback: bool,
    /// Whether the folder may have files, which the mount hides.
    pub(crate) nonempty: bool,
    kernel: Vec<MountOption>,
}

impl MountOptions {
    /// Whether the file system may be written.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// The options in a list with commas.
    ///
    /// # Errors
    /// The option that is unknown or has a wrong value, and what it may have.
    pub fn parse(list: &str) -> Result<Self, String> {
        let mut options = Self {
            config: Config { caches_written: false, ..Config::NORMAL },
            access: Access::ReadWrite,
            writeback: true,
            nonempty: false,
            kernel: Vec::new(),
        };
        for option in list.split(',').filter(|option| !option.is_empty()) {
            options.add(option)?;
        }
        Ok(options)
    }

    fn add(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let number = |least: u32, most: u32| {
            let number = value.parse().ok().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| format!("-o {option}: {name} is a number from {least} to {most}"))
        };
        let one_of = |names: &[&str]| {
            let at = names.iter().position(|name| *name == value);
            at.ok_or_else(|| format!("-o {option}: {name} is one of {}", names.join(", ")))
        };
        let config = &mut self.config;
        match name {
            "victim" => {
                let all = [Victim::Greedy, Victim::CostBenefit, Victim::CostHotness];
                config.victim = all[one_of(&["greedy", "cost-benefit", "cost-hotness"])?];
            }
            "distance" => {
                config.distance = [Distance::Linear, Distance::Log][one_of(&["linear", "log"])?];
            }
            "deferral" => {
                let all = [Deferral::WholeSegments, Deferral::None];
                config.deferral = all[one_of(&["on", "off"])?];
            }
            "preset" => {
                let all = [Config::NORMAL, Config::SFS, Config::LFS_CB];
                let preset = all[one_of(&["normal", "sfs", "lfs-cb"])?].clone();
                let Config { caches_written, access_times, .. } = *config;
                *config = Config { caches_written, access_times, ..preset };
            }
            "k" => config.groups = number(1, 16)?,
            "age_floor" => config.age_floor = number(0, 100)?,
            "commit" => config.checkpoint_seconds = number(1, 3600)?.into(),
            "cache_mb" => config.cache_bytes = u64::from(number(1, 65_536)?) << 20,
            "writethrough" => self.writeback = false,
            "nonempty" => self.nonempty = true,
            _ if self.add_flag(name) || is_the_case(name) => {}
            "strictatime" | "diratime" | "iversion" | "mand" => return Err(not_possible(name)),
            _ => {
                return Err(format!(
                    "-o {option}: unknown option; there are ro, writethrough, nonempty, noatime, \
                     lazytime, nosuid, nodev, noexec, sync, dirsync, victim, k, distance, \
                     age_floor, deferral, preset, commit and cache_mb"
                ));
            }
        }
        Ok(())
    }

    /// Adds a flag of the kernel or takes it back: the last option counts. False for other options.
    fn add_flag(&mut self, name: &str) -> bool {
        let (flag, is_set) = match name {
            "ro" | "rw" => (MountOption::RO, name == "ro"),
            "noatime" | "atime" | "relatime" => (MountOption::NoAtime, name == "noatime"),
            "nosuid" | "suid" => (MountOption::NoSuid, name == "nosuid"),
            "nodev" | "dev" => (MountOption::NoDev, name == "nodev"),
            "noexec" | "exec" => (MountOption::NoExec, name == "noexec"),
            "sync" | "async" => (MountOption::Sync, name == "sync"),
            "dirsync" => (MountOption::DirSync, true),
            // The kernel knows more words than fuser.
            "lazytime" | "nolazytime" => {
                (MountOption::CUSTOM("lazytime".to_owned()), name == "lazytime")
            }
            _ => return false,
        };
        self.kernel.retain(|other| *other != flag);
        match flag {
            MountOption::RO if is_set => self.access = Access::ReadOnly,
            MountOption::RO => self.access = Access::ReadWrite,
            MountOption::NoAtime => self.config.access_times = !is_set,
            _ => {}
        }
        if is_set {
            self.kernel.push(flag);
        }
        true
    }

    /// What is durable at once.
    pub(crate) fn at_once(&self) -> AtOnce {
        if self.kernel.contains(&MountOption::Sync) {
            AtOnce::All
        } else if self.kernel.contains(&MountOption::DirSync) {
            AtOnce::Names
        } else {
            AtOnce::Nothing
        }
    }

    pub(crate) fn session(&self, source: &str) -> fuser::Config {
        let is_root = rustix::process::geteuid().is_root();
        // Root's mounts are made by mount(2), those of others by a program with a list of options.
        let source = if is_root { source.to_owned() } else { source.replace(',', "_") };
        let mut session = fuser::Config::default();
        session.mount_options = self.kernel.clone();
        session.mount_options.extend([
            MountOption::FSName(source),
            MountOption::CUSTOM(format!("subtype={TYPE}")),
            MountOption::DefaultPermissions,
        ]);
        if is_root {
            session.acl = SessionACL::All;
            // Root may have special files and set-user-ID programs, as on other file systems.
            for (allow, deny) in
                [(MountOption::Dev, MountOption::NoDev), (MountOption::Suid, MountOption::NoSuid)]
            {
                if !session.mount_options.contains(&deny) {
                    session.mount_options.push(allow);
                }
            }
        }
        session.n_threads = Some(THREADS);
        session.clone_fd = true;
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_or_named() {
        let parse = MountOptions::parse;
        let options = parse("rw,victim=cost-hotness,k=6,distance=linear,commit=5,ro").unwrap();
        assert_eq!((options.config.victim, options.config.groups), (Victim::CostHotness, 6));
        assert_eq!((options.config.distance, options.access), (Distance::Linear, Access::ReadOnly));
        assert_eq!(
            parse("preset=sfs").unwrap().config,
            Config { caches_written: false, ..Config::SFS }
        );
        let error = |list: &str, part: &str| {
            let error = parse(list).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        error("victim=x", "-o victim=x: victim is one of greedy, cost-benefit, cost-hotness");
        error("k=17", "-o k=17: k is a number from 1 to 16");
        error("k=two", "from 1 to 16");
        error("ro,colour=red", "-o colour=red: unknown option; there are ro");
        for option in ["strictatime", "diratime", "iversion", "mand"] {
            error(&format!("rw,{option}"), &format!("-o {option}: not possible: "));
        }
        for option in ["X-mount.mkdir", "noacl", "nouser_xattr", "xyz", "remount"] {
            error(option, "unknown option");
        }
    }

    #[test]
    fn what_is_the_case_anyway_is_accepted() {
        let fstab = "defaults,noauto,nofail,_netdev,user,comment=data,comment=,x-systemd.automount,\
                     x-systemd.device-timeout=5s,user_xattr,acl,nodiratime,noiversion,async";
        assert_eq!(MountOptions::parse(fstab), MountOptions::parse(""));
    }

    #[test]
    fn the_last_of_two_options_counts() {
        let options = MountOptions::parse("ro,sync,noatime,dirsync,async,rw,atime").unwrap();
        assert_eq!(options.access, Access::ReadWrite);
        assert_eq!((options.at_once(), options.config.access_times), (AtOnce::Names, true));
        let options = MountOptions::parse("rw,async,atime,ro,sync,noatime").unwrap();
        assert_eq!(options.access, Access::ReadOnly);
        assert_eq!((options.at_once(), options.config.access_times), (AtOnce::All, false));
    }
}
