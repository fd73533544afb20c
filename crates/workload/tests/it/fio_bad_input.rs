//! Errors name the option and value, with file and line or the job.

use crate::common::parse;

/// Checks the message for a job with these options.
fn check(options: &str, expected: &str) {
    let text = format!("[job]\n{}\n", options.replace(' ', "\n"));
    let message = parse(&text).expect_err(options).to_string();
    assert!(message.contains(expected), "{options}: {message}");
}

#[test]
fn errors_name_the_line() {
    check("rw=randred", "jobs.fio:2: rw=\"randred\": read, write, trim");
    check("rw=read:8", "jobs.fio:2: rw=\"read:8\"");
    check("rw=read bs=4q", "jobs.fio:3: bs=\"4q\": a whole number");
    check("bs=100", "a multiple of 512 bytes");
    check("bs=4k,8k,16k,32k", "at most three values");
    check("bsrange=4k", "a range as 4k-16k");
    check("bssplit=4k/60:8k/60", "add up to 100");
    check("ba=100", "a multiple of 512");
    check("prioclass=4", "a number from 0 to 3");
    check("iodepth=0", "a number from 1 to 65536");
    check("iodepth=x", "jobs.fio:2: iodepth=\"x\"");
    check("numjobs=5000", "a number from 1 to 4096");
    check("loops=0", "a number from 1");
    check("rwmixread=101", "a number from 0 to 100");
    check("runtime=1y", "a time such as");
    check("thinktime=fast", "a time such as");
    check("size=120%", "1% to 100%");
    check("norandommap=yes", "0 or 1");
    check("ioengine=mmap", "libaio, io_uring");
    check("ioengine=null", "libaio, io_uring");
    check("filename=/dev/a:/dev/b", "one drive is simulated");
    check("sync=maybe", "none, 0, sync");
    check("kb_base=1023", "1000 or 1024");
    check("random_distribution=zipf", "zipf needs a number");
    check("random_distribution=best", "random, zipf, pareto");
    check("random_generator=xor", "tausworthe, tausworthe64 or lfsr");
    check("rate_process=burst", "linear or poisson");
    check("percentile_list=50:101", "no number from 0 to 100");
    check("startdelay=1-2", "a time such as");
}

#[test]
fn errors_in_combinations_name_the_job() {
    check("time_based", "job job: time_based needs a runtime");
    check("size=1g", "reaches beyond the drive's 67108864 bytes");
    check("offset=1g", "beyond the drive's");
    check("offset=32m size=40m", "size=41943040 from byte 33554432 on");
    check("size=2k", "no room for a block of 4096");
    check("offset=100", "at a sector");
    check("rw=randread bs=8k,12k rwmixread=50 rw=randrw", "give norandommap");
    check("rw=randread rate=1m rate_iops=5", "limit the same direction");
    check("wait_for=other", "no job of this name");
    check("rw=randread random_generator=lfsr bsrange=4k-8k", "single block size");
    check("rw=randread random_generator=lfsr ba=512", "leave out random_distribution and ba");
    check("rw=randread random_distribution=zoned_abs:100/1g", "larger than");
    check("rw=rw bs=4k,32m size=1m", "a block does not fit");
    check("numjobs=2 offset_increment=60m size=8m", "reaches beyond");
}
