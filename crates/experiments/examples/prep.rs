//! scratch
use prism_base::{Bytes, Rng};
use prism_engine::Immediate;
use prism_ftl::PageMap;
use prism_nand::Nand;
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/self/stat").unwrap();
    let f: Vec<_> = s.rsplit(')').next().unwrap().split_whitespace().collect();
    (f[11].parse::<f64>().unwrap()) / 100.0 + 1e-9
}
fn main() {
    let device = prism_experiments::speed::large(4096).unwrap();
    let t = cpu();
    let mut nand = Nand::new(device.geometry());
    let mut ftl = PageMap::new(device.geometry(), device.ftl_config(), 1).unwrap();
    println!("ready {:.2}", cpu() - t);
    let n = device.ftl_config().logical_units as u64;
    println!("{n} logical {} physical", device.geometry().units());
    let mut e = Immediate::new(&mut nand, &mut ftl);
    let t = cpu();
    let mut buf: Vec<u32> = Vec::new();
    let mut v = 1;
    for start in (0..n).step_by(4096) {
        buf.clear();
        buf.extend(start as u32..(start + 4096).min(n) as u32);
        e.write_all(&buf, v);
        v += buf.len() as u64;
    }
    println!("fill {:.2}", cpu() - t);
    let mut rng = Rng::stream(1, "x");
    for part in 0..4 {
        let t = cpu();
        let before = *e.counts();
        for _ in 0..n / 4 / 4096 {
            buf.clear();
            buf.extend((0..4096).map(|_| rng.below(n) as u32));
            e.write_all(&buf, v);
            v += buf.len() as u64;
        }
        let c = e.counts().since(&before);
        println!(
            "overwrite {part} {:.2} WA {:.3}",
            cpu() - t,
            c.units.total() as f64 / (n / 4) as f64
        );
    }
    let _ = Bytes(0);
    println!(
        "{}",
        std::fs::read_to_string("/proc/self/status")
            .unwrap()
            .lines()
            .find(|l| l.starts_with("VmHWM"))
            .unwrap()
    );
}
