"""The system calls that a confined program may make, and how the kernel answers the others.

This is a list of what is allowed: a call that a newer kernel adds is refused until it stands here. The numbers are those of the
kernel's tables (arch/x86/entry/syscalls/syscall_64.tbl and scripts/syscall.tbl, which arm64 uses), up to Linux 7.0.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

NO_EFFECT: Final = 0
"""An answer without an error: the caller sees success, and nothing has changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """Holds if an argument of the call, after *mask*, has one of *values*.

    Args:
        argument: The index of the argument, from 0. Its lower 32 bits count: the kernel reads no more of these arguments.
        values: What the masked argument may be.
        mask: The bits that are compared.
    """

    argument: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """The answer to one system call.

    Args:
        allowed: Whether the call may run.
        conditions: All of these must hold for an allowed call to run.
        otherwise: The error number of a call that does not run; `NO_EFFECT` reports success.
    """

    allowed: bool = False
    conditions: tuple[Condition, ...] = ()
    otherwise: int = errno.EPERM


UNKNOWN: Final = Rule(otherwise=errno.ENOSYS)
"""The answer to a call that is not in the tables: the C library falls back to an older call."""


def rules(machine: str, *, network: bool, loopback: bool = False) -> dict[int, Rule]:
    """Return the rule of every known system call by its number.

    Args:
        machine: `x86_64` or `aarch64`.
        network: Whether the program may make sockets.
        loopback: Whether it may make sockets of TCP. Its network must then have no other device than that of loopback.
    """
    named = _rules_by_names(network=network, loopback=loopback)
    by_name = {name: rule for names, rule in named for name in names.split()}
    return {number: by_name[name] for name, number in numbers(machine).items()}


def numbers(machine: str) -> dict[str, int]:
    """Return the number of every known system call by its name, for `x86_64` or `aarch64`."""
    found: dict[str, int] = {}
    for line in (*_TABLES[machine].splitlines(), *_NEWER.splitlines()):
        first, *names = line.split() or ["0"]
        found.update((name, number) for number, name in enumerate(names, int(first)))
    return found


def _rules_by_names(*, network: bool, loopback: bool = False) -> Iterator[tuple[str, Rule]]:
    """Yield names of system calls, separated by spaces, with the rule that these have."""
    for names in _ALLOWED.values():
        yield names, Rule(allowed=True)
    for name, (conditions, otherwise) in _CONDITIONAL.items():
        yield name, Rule(allowed=True, conditions=conditions, otherwise=otherwise)
    requests = (*_REQUESTS.values(), *(_NETWORK_REQUESTS.values() if network else ()))
    by_request = Condition(argument=1, values=requests)
    yield "ioctl", Rule(allowed=True, conditions=(by_request,), otherwise=errno.ENOTTY)
    of_tcp = _STREAMS_OF_INTERNET if loopback and not network else ()
    yield "socket", Rule(allowed=network or loopback, conditions=of_tcp, otherwise=errno.EACCES)
    yield _SOCKETS, Rule(allowed=network or loopback, otherwise=errno.EACCES)
    pairs = () if network else _PAIRS_OF_STREAMS
    yield "socketpair", Rule(allowed=True, conditions=pairs, otherwise=errno.EACCES)
    yield _WITHOUT_EFFECT, Rule(otherwise=NO_EFFECT)
    yield _NOT_SUPPORTED, Rule(otherwise=errno.EOPNOTSUPP)
    yield _NOT_IMPLEMENTED, UNKNOWN
    for names in _REFUSED.values():
        yield names, Rule()


_ALLOWED: Final[Mapping[str, str]] = {
    "files and folders: Landlock decides which": """
        open openat openat2 creat close close_range dup dup2 dup3 read write readv writev pread64 pwrite64 preadv pwritev
        preadv2 pwritev2 lseek sendfile splice tee vmsplice copy_file_range readahead fadvise64 fallocate truncate ftruncate
        fsync fdatasync sync_file_range flock getdents getdents64 rename renameat renameat2 mkdir mkdirat rmdir link linkat
        unlink unlinkat symlink symlinkat mknod mknodat umask
    """,
    "names, sizes and times of files: Landlock hides none, and no program starts without them": """
        stat fstat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat statfs fstatfs getcwd chdir fchdir
    """,
    "pipes, events, and waiting for them": """
        pipe pipe2 poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
        eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime
    """,
    "data on a pair of connected streams, the only sockets without --allow network": """
        sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown getsockname getpeername setsockopt getsockopt
    """,
    "memory of the process": """
        brk mmap munmap mprotect mremap msync mincore madvise mlock mlock2 munlock mlockall munlockall memfd_create mseal
        membarrier pkey_mprotect pkey_alloc pkey_free map_shadow_stack get_mempolicy set_mempolicy mbind
        set_mempolicy_home_node
    """,
    "processes and threads": """
        fork vfork execve execveat exit exit_group wait4 waitid pidfd_open getpid getppid gettid getpgid getpgrp setpgid
        getsid setsid prctl arch_prctl set_tid_address set_robust_list rseq rseq_slice_yield futex futex_waitv futex_wake
        futex_wait futex_requeue sched_yield sched_getparam sched_getscheduler sched_getattr sched_getaffinity
        sched_get_priority_max sched_get_priority_min sched_rr_get_interval getpriority ioprio_get getcpu getrlimit setrlimit
        getrusage times
    """,
    "signals: Landlock keeps them from other processes; a filter cannot tell whose number a process has": """
        rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack restart_syscall
        pause kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal
    """,
    "clocks and timers": """
        time gettimeofday clock_gettime clock_getres nanosleep clock_nanosleep alarm getitimer setitimer timer_create
        timer_settime timer_gettime timer_getoverrun timer_delete
    """,
    "users and capabilities: without capabilities none can be gained": """
        getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid setresgid
        setfsuid setfsgid setgroups capget capset
    """,
    "tighter confinement of the program's own children": """
        seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self
    """,
    "facts about the system, and random numbers": "uname sysinfo getrandom",
    "returns from probes, which the kernel itself makes in a process that somebody traces": "uretprobe uprobe",
}
"""System calls that run with any arguments, by what they are for."""

_ITSELF: Final = (Condition(argument=0, values=(0,)),)
"""The process 0 is the caller. Other numbers may be processes of somebody else, whose limits and priority are not changed."""

_NEW_NAMESPACES: Final = 0x7E020000
"""The flags CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET (include/uapi/linux/sched.h)."""

_CONDITIONAL: Final[Mapping[str, tuple[tuple[Condition, ...], int]]] = {
    # A thread or a process, in the namespaces of its parent.
    "clone": ((Condition(argument=0, values=(0,), mask=_NEW_NAMESPACES),), errno.EPERM),
    "prlimit64": (_ITSELF, errno.EPERM),
    "sched_setaffinity": (_ITSELF, errno.EPERM),
    "sched_setattr": (_ITSELF, errno.EPERM),
    "sched_setparam": (_ITSELF, errno.EPERM),
    "sched_setscheduler": (_ITSELF, errno.EPERM),
    # PRIO_PROCESS, of the caller.
    "setpriority": ((Condition(argument=0, values=(0,)), Condition(argument=1, values=(0,))), errno.EPERM),
    # The personality is read, not set.
    "personality": ((Condition(argument=0, values=(0xFFFFFFFF,)),), errno.EPERM),
    # Neither F_SETLEASE, by which a file that may only be read is kept from those who open it, nor F_NOTIFY, nor the owners and
    # signals of asynchronous input: F_DUPFD to F_SETLKW, the locks of open files (36 to 38), and F_GETLEASE, F_DUPFD_QUERY,
    # F_CREATED_QUERY, F_DUPFD_CLOEXEC, F_SETPIPE_SZ, F_GETPIPE_SZ, F_ADD_SEALS and F_GET_SEALS.
    "fcntl": (
        (Condition(argument=1, values=(*range(8), 36, 37, 38, 1025, 1027, 1028, *range(1030, 1035))),),
        errno.EPERM,
    ),
}
"""System calls that run if all conditions hold, and the error number if not."""

_REQUESTS: Final[Mapping[str, int]] = {
    "TCGETS": 0x5401,
    "TCGETS2": 0x802C542A,
    "TIOCGPGRP": 0x540F,
    "TIOCGWINSZ": 0x5413,
    "TIOCOUTQ": 0x5411,
    "FIONREAD": 0x541B,
    "FIONBIO": 0x5421,
    "FIONCLEX": 0x5450,
    "FIOCLEX": 0x5451,
    "FIOQSIZE": 0x5460,
    "FICLONE": 0x40049409,
    "FICLONERANGE": 0x4020940D,
    "FS_IOC_FIEMAP": 0xC020660B,
    "FS_IOC_GETFLAGS": 0x80086601,
    "RNDGETENTCNT": 0x80045200,
}
"""Requests of ioctl that run. Others change flags, encryption or folders by a descriptor that may only be read, or type into a terminal."""

_NETWORK_REQUESTS: Final[Mapping[str, int]] = {
    "SIOCATMARK": 0x8905,
    "SIOCGIFNAME": 0x8910,
    "SIOCGIFCONF": 0x8912,
    "SIOCGIFFLAGS": 0x8913,
    "SIOCGIFADDR": 0x8915,
    "SIOCGIFDSTADDR": 0x8917,
    "SIOCGIFBRDADDR": 0x8919,
    "SIOCGIFNETMASK": 0x891B,
    "SIOCGIFMETRIC": 0x891D,
    "SIOCGIFMTU": 0x8921,
    "SIOCGIFHWADDR": 0x8927,
    "SIOCGIFINDEX": 0x8933,
    "SIOCGIFTXQLEN": 0x8942,
    "SIOCETHTOOL": 0x8946,
    "SIOCGIFMAP": 0x8970,
}
"""Requests of ioctl that read addresses and devices of the network: any socket answers them, even one of a pair."""

_SOCKETS: Final = "bind connect listen accept accept4"
_STREAMS_OF_INTERNET: Final = (
    Condition(argument=0, values=(2, 10)),
    Condition(argument=1, values=(1,), mask=0xF),
)
"""AF_INET or AF_INET6, and SOCK_STREAM. A socket of AF_UNIX could be connected to a daemon, whatever network the program has."""

_PAIRS_OF_STREAMS: Final = (Condition(argument=0, values=(1,)), Condition(argument=1, values=(1,), mask=0xF))
"""AF_UNIX and SOCK_STREAM: such a pair is inside the program. One of datagrams can be connected to the socket of a daemon."""

_WITHOUT_EFFECT: Final = """
    chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat
    setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat
    sync syncfs
"""
"""Modes, owners, times and attributes of files of others, which Landlock does not protect. Libraries set them along with files of their
own, so the calls succeed. Disks of the machine are not flushed."""

_NOT_SUPPORTED: Final = """
    getxattr lgetxattr fgetxattr getxattrat listxattr llistxattr flistxattr listxattrat file_getattr file_setattr
"""
"""Extended attributes of any file, which Landlock does not protect: libraries take them as a feature that the file system lacks."""

_NOT_IMPLEMENTED: Final = """
    clone3
    uselib _sysctl create_module get_kernel_syms query_module nfsservctl getpmsg putpmsg afs_syscall tuxcall security vserver
    epoll_ctl_old epoll_wait_old lookup_dcookie
"""
"""The flags of clone3 are in memory, where no filter sees them: the C library uses clone instead. The kernel has none of the others."""

_REFUSED: Final[Mapping[str, str]] = {
    "memory, messages and semaphores that others of the user share, and that outlive the program": """
        shmget shmat shmctl shmdt msgget msgsnd msgrcv msgctl semget semop semctl semtimedop
        mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
    """,
    "what others do with files, even with those that cannot be opened": """
        inotify_init inotify_init1 inotify_add_watch inotify_rm_watch fanotify_init fanotify_mark cachestat
    """,
    "files by a handle, past their folders": "name_to_handle_at open_by_handle_at",
    "keys of the user": "add_key request_key keyctl",
    "other processes": """
        ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp get_robust_list
        migrate_pages move_pages ioprio_set perf_event_open
    """,
    "work that the kernel does past this filter, and its largest interfaces": """
        io_uring_setup io_uring_enter io_uring_register io_setup io_destroy io_getevents io_pgetevents io_submit io_cancel
        bpf userfaultfd
    """,
    "namespaces and mounts": """
        unshare setns listns mount umount2 pivot_root chroot mount_setattr open_tree open_tree_attr move_mount fsopen fsconfig
        fsmount fspick statmount listmount
    """,
    "administration of the machine": """
        init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct quotactl quotactl_fd
        syslog sethostname setdomainname settimeofday clock_settime adjtimex clock_adjtime iopl ioperm vhangup sysfs ustat
        lsm_get_self_attr lsm_set_self_attr lsm_list_modules
    """,
    "nothing that interpreters use": "memfd_secret modify_ldt set_thread_area get_thread_area remap_file_pages",
}
"""System calls that do not run, by the reason. The error is EPERM."""

_TABLES: Final[Mapping[str, str]] = {
    "x86_64": """
0 read write open close stat fstat lstat poll lseek mmap
10 mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn ioctl pread64 pwrite64 readv
20 writev access pipe select sched_yield mremap msync mincore madvise shmget
30 shmat shmctl dup dup2 pause nanosleep getitimer alarm setitimer getpid
40 sendfile socket connect accept sendto recvfrom sendmsg recvmsg shutdown bind
50 listen getsockname getpeername socketpair setsockopt getsockopt clone fork vfork execve
60 exit wait4 kill uname semget semop semctl shmdt msgget msgsnd
70 msgrcv msgctl fcntl flock fsync fdatasync truncate ftruncate getdents getcwd
80 chdir fchdir rename mkdir rmdir creat link unlink symlink readlink
90 chmod fchmod chown fchown lchown umask gettimeofday getrlimit getrusage sysinfo
100 times ptrace getuid syslog getgid setuid setgid geteuid getegid setpgid
110 getppid getpgrp setsid setreuid setregid getgroups setgroups setresuid getresuid setresgid
120 getresgid getpgid setfsuid setfsgid getsid capget capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo
130 rt_sigsuspend sigaltstack utime mknod uselib personality ustat statfs fstatfs sysfs
140 getpriority setpriority sched_setparam sched_getparam sched_setscheduler sched_getscheduler sched_get_priority_max
147 sched_get_priority_min sched_rr_get_interval mlock munlock mlockall munlockall vhangup modify_ldt pivot_root _sysctl
157 prctl arch_prctl adjtimex setrlimit chroot sync acct settimeofday mount umount2 swapon swapoff reboot
170 sethostname setdomainname iopl ioperm create_module init_module delete_module get_kernel_syms query_module quotactl
180 nfsservctl getpmsg putpmsg afs_syscall tuxcall security gettid readahead setxattr lsetxattr
190 fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr
200 tkill time futex sched_setaffinity sched_getaffinity set_thread_area io_setup io_destroy io_getevents io_submit
210 io_cancel get_thread_area lookup_dcookie epoll_create epoll_ctl_old epoll_wait_old remap_file_pages getdents64
218 set_tid_address restart_syscall semtimedop fadvise64 timer_create timer_settime timer_gettime timer_getoverrun
226 timer_delete clock_settime clock_gettime clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes
236 vserver mbind set_mempolicy get_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
246 kexec_load waitid add_key request_key keyctl ioprio_set ioprio_get inotify_init inotify_add_watch inotify_rm_watch
256 migrate_pages openat mkdirat mknodat fchownat futimesat newfstatat unlinkat renameat linkat symlinkat readlinkat
268 fchmodat faccessat pselect6 ppoll unshare set_robust_list get_robust_list splice tee sync_file_range vmsplice
279 move_pages utimensat epoll_pwait signalfd timerfd_create eventfd fallocate timerfd_settime timerfd_gettime accept4
289 signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1 preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg
300 fanotify_init fanotify_mark prlimit64 name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg setns getcpu
310 process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2 seccomp getrandom
319 memfd_create kexec_file_load bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2
329 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents rseq uretprobe uprobe
""",
    "aarch64": """
0 io_setup io_destroy io_submit io_cancel io_getevents setxattr lsetxattr fsetxattr getxattr lgetxattr
10 fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr getcwd lookup_dcookie eventfd2
20 epoll_create1 epoll_ctl epoll_pwait dup dup3 fcntl inotify_init1 inotify_add_watch inotify_rm_watch ioctl
30 ioprio_set ioprio_get flock mknodat mkdirat unlinkat symlinkat linkat renameat umount2
40 mount pivot_root nfsservctl statfs fstatfs truncate ftruncate fallocate faccessat chdir
50 fchdir chroot fchmod fchmodat fchownat fchown openat close vhangup pipe2
60 quotactl getdents64 lseek read write readv writev pread64 pwrite64 preadv
70 pwritev sendfile pselect6 ppoll signalfd4 vmsplice splice tee readlinkat newfstatat
80 fstat sync fsync fdatasync sync_file_range timerfd_create timerfd_settime timerfd_gettime utimensat acct
90 capget capset personality exit exit_group waitid set_tid_address unshare futex set_robust_list
100 get_robust_list nanosleep getitimer setitimer kexec_load init_module delete_module timer_create timer_gettime
109 timer_getoverrun timer_settime timer_delete clock_settime clock_gettime clock_getres clock_nanosleep syslog ptrace
118 sched_setparam sched_setscheduler sched_getscheduler sched_getparam sched_setaffinity sched_getaffinity sched_yield
125 sched_get_priority_max sched_get_priority_min sched_rr_get_interval restart_syscall kill tkill tgkill sigaltstack
133 rt_sigsuspend rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigreturn
140 setpriority getpriority reboot setregid setgid setreuid setuid setresuid getresuid setresgid
150 getresgid setfsuid setfsgid times setpgid getpgid getsid setsid getgroups setgroups
160 uname sethostname setdomainname getrlimit setrlimit getrusage umask prctl getcpu gettimeofday
170 settimeofday adjtimex getpid getppid getuid geteuid getgid getegid gettid sysinfo
180 mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr msgget msgctl msgrcv msgsnd
190 semget semctl semtimedop semop shmget shmctl shmat shmdt socket socketpair
200 bind listen accept connect getsockname getpeername sendto recvfrom setsockopt getsockopt
210 shutdown sendmsg recvmsg readahead brk munmap mremap add_key request_key keyctl
220 clone execve mmap fadvise64 swapon swapoff mprotect msync mlock munlock
230 mlockall munlockall mincore madvise remap_file_pages mbind get_mempolicy set_mempolicy migrate_pages move_pages
240 rt_tgsigqueueinfo perf_event_open accept4 recvmmsg
260 wait4 prlimit64 fanotify_init fanotify_mark name_to_handle_at open_by_handle_at clock_adjtime syncfs setns sendmmsg
270 process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2 seccomp getrandom
279 memfd_create bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc
290 pkey_free statx io_pgetevents rseq kexec_file_load
""",
}
"""Names in the order of their numbers, from the number at the start of a line on."""

_NEWER: Final = """
424 pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen fsconfig fsmount fspick
434 pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2 mount_setattr quotactl_fd
444 landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret process_mrelease futex_waitv
450 set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake futex_wait futex_requeue statmount listmount
459 lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal setxattrat getxattrat listxattrat removexattrat
467 open_tree_attr file_getattr file_setattr listns rseq_slice_yield
"""
"""As in `_TABLES`; from 424 on all architectures have the same numbers."""
