set confirm off
directory $tree
source $build/vmlinux-gdb.py
target remote $socket
${wait}lx-symbols $build
set breakpoint pending on
echo break ixgbe_rust::... stops in the driver, lx-dmesg shows the log\n
