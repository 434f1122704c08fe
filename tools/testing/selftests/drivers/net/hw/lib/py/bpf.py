# SPDX-License-Identifier: GPL-2.0

""" BPF programs of a few instructions, without a compiler and a library. """

import contextlib
import ctypes
import os
import struct

_BPF = {"x86_64": 321, "aarch64": 280}
_MAP_CREATE, _MAP_UPDATE, _PROG_LOAD, _OBJ_PIN, _LINK_CREATE = 0, 2, 5, 6, 28
_DEVMAP, _XSKMAP = 14, 17
_SCHED_CLS, _XDP = 3, 6
_XDP_INGRESS, _TCX_INGRESS = 37, 46
_IN_DRIVER = 1 << 2
_HAS_FRAGS = 1 << 5
_REDIRECT, _ADJUST_HEAD, _REDIRECT_MAP, _ADJUST_META, _ADJUST_TAIL = 23, 44, 51, 54, 65
XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT = range(5)
TCX_NEXT, TCX_DROP = -1, 2

_LOAD, _STORE, _MOVE, _COPY, _ADD = 0x61, 0x62, 0xb7, 0xbf, 0x07
_LOAD_MAP, _OF_DESCRIPTOR = 0x18, 1
_CALL, _EXIT, _IF_NOT_ZERO, _IF_ABOVE, _IF_NOT_EQUAL = 0x85, 0x95, 0x55, 0x2d, 0x55
# Offsets in struct xdp_md and struct __sk_buff.
_XDP_DATA, _XDP_META, _XDP_QUEUE, _SKB_DATA, _SKB_META = 0, 8, 16, 76, 140
_METASIZE, _MAGIC = 8, 0x5eed


def _bpf(command, attributes):
    """ Call bpf(), and return its result. """
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes)
    number = _BPF[os.uname().machine]
    result = libc.syscall(number, command, buffer, len(attributes))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf(): {os.strerror(ctypes.get_errno())}")
    return result


def _op(code, dst=0, src=0, off=0, imm=0):
    return struct.pack("<BBhi", code, src << 4 | dst, off, imm)


def _load(kind, code, flags=0):
    """ Load a program, and return its file descriptor. """
    insns, name = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    log = ctypes.create_string_buffer(1 << 16)
    try:
        return _bpf(_PROG_LOAD, struct.pack(
            "<IIQQIIQII", kind, len(code) // 8, ctypes.addressof(insns), ctypes.addressof(name),
            1, len(log), ctypes.addressof(log), 0, flags))
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}: {log.value.decode()}") from error


def xdp_program(action, head=0, tail=0, meta=False, frags=False):
    """
    Load an XDP program that moves the start and the end of each frame by so many bytes, puts
    metadata in front of it, and returns the action. It aborts if it cannot do that. With @frags, it
    can do with frames in several buffers.
    """
    moves = [(_ADJUST_HEAD, head), (_ADJUST_TAIL, tail), (_ADJUST_META, -_METASIZE if meta else 0)]
    steps = []
    for helper, by in moves:
        if by:
            steps.append(_op(_COPY, 1, 6) + _op(_MOVE, 2, imm=by) + _op(_CALL, imm=helper))
    ends = _op(_MOVE, 0, imm=action) + _op(_EXIT)
    if meta:
        # The verifier has to see that the metadata is as long as that.
        ends = (_op(_LOAD, 2, 6, _XDP_META) + _op(_LOAD, 3, 6, _XDP_DATA) + _op(_COPY, 4, 2)
                + _op(_ADD, 4, imm=_METASIZE) + _op(_IF_ABOVE, 4, 3, off=1)
                + _op(_STORE, 2, imm=_MAGIC) + ends)
    # The verifier refuses what no step goes to.
    code = _op(_MOVE, 0, imm=XDP_ABORTED) + _op(_EXIT) if steps else b""
    for step in reversed([*steps, ends]):
        # A helper that fails goes to the end of the program.
        if step is not ends:
            step += _op(_IF_NOT_ZERO, 0, off=(len(code) - 16) // 8)
        code = step + code
    return _load(_XDP, _op(_COPY, 6, 1) + code, _HAS_FRAGS if frags else 0)


def redirect_program(ifindex, frags=False):
    """ Load an XDP program that redirects each frame to an interface. """
    return _load(_XDP, _op(_MOVE, 1, imm=ifindex) + _op(_MOVE, 2) + _op(_CALL, imm=_REDIRECT)
                 + _op(_EXIT), _HAS_FRAGS if frags else 0)


def _map(kind, entries):
    """ Make a map of numbers by number, and return its file descriptor. """
    return _bpf(_MAP_CREATE, struct.pack("<IIII", kind, 4, 4, entries))


def _put(table, key, value):
    key, value = (ctypes.create_string_buffer(struct.pack("<I", one)) for one in (key, value))
    _bpf(_MAP_UPDATE, struct.pack("<IIQQQ", table, 0, ctypes.addressof(key),
                                  ctypes.addressof(value), 0))


def devmap(ifindex):
    """ Make a map of one interface, and return its file descriptor. """
    found = _map(_DEVMAP, 1)
    _put(found, 0, ifindex)
    return found


def redirect_map_program(descriptor, frags=False):
    """ Load an XDP program that redirects each frame by entry 0 of a map. """
    return _load(_XDP, _op(_LOAD_MAP, 1, _OF_DESCRIPTOR, imm=descriptor) + _op(0)
                 + _op(_MOVE, 2) + _op(_MOVE, 3) + _op(_CALL, imm=_REDIRECT_MAP) + _op(_EXIT),
                 _HAS_FRAGS if frags else 0)


def attach_xdp(program, ifindex):
    """ Attach a program to an interface, in its driver, for as long as the result is open. """
    return _bpf(_LINK_CREATE, struct.pack("<IIII", program, ifindex, _XDP_INGRESS, _IN_DRIVER))


def socket_map(entries):
    """ Make a map of AF_XDP sockets by queue, and return its file descriptor. """
    return _map(_XSKMAP, entries)


def put_socket(sockets, queue, sock):
    """ Have programs find a socket by its queue. """
    _put(sockets, queue, sock.fileno())


def socket_program(sockets, other=XDP_PASS, frags=False):
    """
    Load an XDP program that redirects each frame to the socket of its queue, or returns another
    action if there is none. With @frags, see xdp_program().
    """
    return _load(_XDP, _op(_LOAD, 2, 1, _XDP_QUEUE)
                 + _op(_LOAD_MAP, 1, _OF_DESCRIPTOR, imm=sockets) + _op(0)
                 + _op(_MOVE, 3, imm=other) + _op(_CALL, imm=_REDIRECT_MAP) + _op(_EXIT),
                 _HAS_FRAGS if frags else 0)


@contextlib.contextmanager
def drops_with_metadata(ifindex):
    """ In a block, have the stack drop frames that have the metadata of xdp_program(). """
    program = _load(_SCHED_CLS, b"".join([
        _op(_LOAD, 2, 1, _SKB_META), _op(_LOAD, 3, 1, _SKB_DATA), _op(_COPY, 4, 2),
        _op(_ADD, 4, imm=_METASIZE), _op(_IF_ABOVE, 4, 3, off=4),
        _op(_LOAD, 5, 2), _op(_IF_NOT_EQUAL, 5, off=2, imm=_MAGIC),
        _op(_MOVE, 0, imm=TCX_DROP), _op(_EXIT),
        _op(_MOVE, 0, imm=TCX_NEXT), _op(_EXIT)]))
    try:
        link = _bpf(_LINK_CREATE, struct.pack("<IIII", program, ifindex, _TCX_INGRESS, 0))
    finally:
        os.close(program)
    try:
        yield
    finally:
        os.close(link)


def pin(program, path):
    """ Give a program a name in a file system of type bpf. """
    name = ctypes.create_string_buffer(path.encode())
    _bpf(_OBJ_PIN, struct.pack("<QII", ctypes.addressof(name), program, 0))
