//! A process's memory as the kernel tells it.

/// A figure of `/proc/<process>/status`, in MiB: `VmRSS` now, `VmHWM` at most.
pub(crate) fn mib(process: &str, name: &str) -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let kib: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
        .ok_or("the kernel does not tell the memory of the process")?;
    Ok(kib / 1_024)
}
