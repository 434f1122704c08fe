# SPDX-License-Identifier: GPL-2.0
"""tools/buildroot: the mirror, making the root, and entering it from anywhere."""

from __future__ import annotations

import os
import resource
import time

from sandbox import CLONE, SandboxTest

DEB822 = """\
Types: deb
# http://snapshot.debian.org/archive/debian/20250520T000000Z
URIs: http://mirror.example/debian/
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
"""
ONE_LINE = "deb [arch=amd64 signed-by=/k.gpg] http://one.example/debian trixie main\n"
FOREIGN = """\
Types: deb-src
URIs: http://sources.example/debian
Suites: trixie

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: trixie

Types: deb
URIs: https://packages.example/node
Suites: nodistro
"""
# Seconds of processor time that it takes at most to refuse a wrong value.
_SOON = 4.0
MADE = """
for part; do case $part in */root-*.part) ;; *) continue ;; esac; break; done
mkdir "$part" && printf '%s\\n' "$@" >"$part/words"
"""


class MirrorTest(SandboxTest):
    """The mirror is read from apt's sources: a fresh container has no lists."""

    def test_deb822(self) -> None:
        (self.apt / "sources.list.d/debian.sources").write_text(DEB822)
        done = self.run_script("$BUILDROOT mirror")
        self.assertEqual(done.stdout, "http://mirror.example/debian\n")

    def test_deb822_with_fields_on_several_lines(self) -> None:
        text = DEB822.replace("URIs: ", "URIs:\n ").replace("Suites: ", "Suites:\n ")
        (self.apt / "sources.list.d/debian.sources").write_text(text)
        done = self.run_script("$BUILDROOT mirror")
        self.assertEqual(done.stdout, "http://mirror.example/debian\n")

    def test_one_line(self) -> None:
        (self.apt / "sources.list").write_text("# deb http://no.example trixie main\n" + ONE_LINE)
        done = self.run_script("$BUILDROOT mirror")
        self.assertEqual(done.stdout, "http://one.example/debian\n")

    def test_disabled_and_foreign_sources_are_none(self) -> None:
        (self.apt / "sources.list.d/other.sources").write_text(FOREIGN)
        (self.apt / "sources.list").write_text("deb http://u.example/ubuntu noble main\n")
        done = self.run_script("$BUILDROOT mirror")
        self.assert_fails(done, "no Debian mirror is known", "set SKBULK_MIRROR")

    def test_the_variable_comes_first(self) -> None:
        (self.apt / "sources.list").write_text(ONE_LINE)
        done = self.run_script("$BUILDROOT mirror", SKBULK_MIRROR="http://mine.example/debian")
        self.assertEqual(done.stdout, "http://mine.example/debian\n")

    def test_a_mirror_that_is_no_address(self) -> None:
        done = self.run_script("$BUILDROOT mirror", SKBULK_MIRROR="debian")
        self.assert_fails(done, "SKBULK_MIRROR=debian is not the address")


class MakeTest(SandboxTest):
    """Problems are reported before anything is fetched."""

    def setUp(self) -> None:
        super().setUp()
        (self.apt / "sources.list").write_text(ONE_LINE)

    def test_without_mirror(self) -> None:
        (self.apt / "sources.list").write_text("")
        done = self.run_script("$BUILDROOT make")
        self.assert_fails(done, "set SKBULK_MIRROR")
        self.assertNotIn("about 1 GB", done.stdout)

    def test_packages_come_from_the_mirror(self) -> None:
        self.program("mmdebstrap", MADE)
        done = self.run_script('$BUILDROOT make && cat "$($BUILDROOT path)/words"')
        self.assert_succeeds(done, "build root ready", "deb http://one.example/debian trixie main")
        self.assertIn(",rustc/trixie-backports,", done.stdout)

    def test_a_failure_names_a_log_that_is_there(self) -> None:
        self.program("mmdebstrap", "echo 'E: no such suite' >&2; exit 25")
        done = self.run_script("$BUILDROOT make")
        self.assert_fails(done, "could not be made", "E: no such suite", "root.log")

    def test_mmdebstrap_that_cannot_be_installed(self) -> None:
        self.program("apt-get", "echo 'E: no network'; exit 100")
        done = self.run_script(
            "mkdir $TOP/all; ln -sf -t $TOP/all /usr/bin/* /usr/sbin/*; rm -f $TOP/all/mmdebstrap\n"
            "mount -t tmpfs sandbox /usr/sbin; PATH=$TOP/bin:$TOP/all $BUILDROOT make"
        )
        self.assert_fails(done, "could not install mmdebstrap", "apt.log")

    def test_mmdebstrap_that_was_fetched_in_part(self) -> None:
        self.program("apt-get", "[[ $* != *download* ]] || touch a.deb b.deb")
        # A user's own copy; unpacking the second package is killed once.
        self.program(
            "dpkg-deb",
            "part=$TOP/${2##*/}; mkdir -p $part/usr/bin $part/usr/share/perl/5\n"
            "if [[ $2 == *a.deb ]]; then cp $TOP/tool $part/usr/bin/mmdebstrap\n"
            "elif [ ! -e $TOP/killed ]; then touch $TOP/killed; kill -KILL $PPID; exit 1\n"
            "else touch $part/usr/share/perl/5/Module.pm; fi; tar -c -C $part .",
        )
        (self.top / "tool").write_text(f"#!/bin/bash\nls ${{PERL5LIB%%:*}} >&2\n{MADE}\n")
        (self.top / "tool").chmod(0o755)
        done = self.run_script(
            "mkdir $TOP/all; ln -sf -t $TOP/all /usr/bin/* /usr/sbin/*; rm -f $TOP/all/mmdebstrap\n"
            "mount -t tmpfs sandbox /usr/sbin; PATH=$TOP/bin:$TOP/all; $BUILDROOT make || true\n"
            "echo again; $BUILDROOT make; cat $CACHE/skbulk/root.log",
            SKBULK_USERNS="1",
        )
        self.assert_succeeds(done, "could not be made", "Module.pm")

    def test_a_full_disk(self) -> None:
        done = self.run_script("mount -t tmpfs -o size=20M small $CACHE\n$BUILDROOT make")
        self.assert_fails(done, "the build root takes", "set XDG_CACHE_HOME")

    def test_a_cache_that_cannot_be_written(self) -> None:
        done = self.run_script("mount -t tmpfs -o ro small $CACHE\n$BUILDROOT make")
        self.assert_fails(done, "cannot be written to", "set XDG_CACHE_HOME")

    def test_a_clone_of_another_user(self) -> None:
        done = self.run_script(
            "mkdir -p $CLONE/out; mount -t tmpfs -o ro small $CLONE/out\n$BUILDROOT testbed demo"
        )
        self.assert_fails(done, "/out cannot be written to", "a clone of your own")
        self.assertNotIn("about 1 GB", done.stdout)

    def test_a_container_without_namespaces(self) -> None:
        self.program("mmdebstrap", MADE)
        done = self.run_script(
            "setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin $BUILDROOT make"
        )
        self.assert_fails(done, "allows no mount and pid namespaces", "--privileged")

    def test_a_user_without_subordinate_ids(self) -> None:
        done = self.run_script(
            "chown 1234 $CACHE\nsetpriv --reuid=1234 --clear-groups $BUILDROOT make"
        )
        self.assert_fails(done, "1234 has no subordinate ids", "/etc/subuid")

    def test_a_wrong_value_of_skbulk_host(self) -> None:
        done = self.run_script("$BUILDROOT run true", SKBULK_HOST="maybe")
        self.assert_fails(done, "SKBULK_HOST=maybe")


class ForeignTest(SandboxTest):
    """The root file system for guests of another architecture."""

    def setUp(self) -> None:
        super().setUp()
        (self.apt / "sources.list").write_text(ONE_LINE)
        self.program(
            "mmdebstrap",
            MADE.replace("root-", "guest-") + 'mkdir -p "$part"/{etc,usr/bin,usr/lib,var/log}',
        )

    def test_packages_are_unpacked_and_not_run(self) -> None:
        done = self.run_script(
            "$BUILDROOT foreign arm64; cd $CACHE/skbulk/guest-arm64-*/\n"
            "cat words etc/passwd; ls -d usr/lib/modules; readlink usr/bin/awk"
        )
        self.assert_succeeds(done, "--variant=extract\n--architectures=arm64\n", "root:x:0:0:",
                             "usr/lib/modules\nmawk\n")  # fmt: skip

    def test_it_is_made_once(self) -> None:
        done = self.run_script(
            "$BUILDROOT foreign arm64; rm $TOP/bin/mmdebstrap; $BUILDROOT foreign arm64"
        )
        self.assert_succeeds(done)
        self.assertEqual(done.stdout.count("==>"), 1)

    def test_a_failure_names_its_log(self) -> None:
        self.program("mmdebstrap", "echo 'E: no such package' >&2; exit 25")
        done = self.run_script("$BUILDROOT foreign arm64")
        self.assert_fails(done, "could not be made", "guest-arm64.log")

    def test_the_calls_that_need_it_make_it(self) -> None:
        done = self.run_in_root(
            'try() { rm -rf $CACHE/skbulk/guest-*; env "$@" $BUILDROOT run env |\n'
            "grep -c SKBULK_GUEST_ARM64= || true; }\n"
            "try 'ONLY=kunit, arm64'; try ONLY=arm64/forward; try CONFIG=arm64\n"
            "try ONLY=arm64-82599\n"
            "try ONLY=arm,kunit; try A=b"
        )
        self.assert_succeeds(done)
        counts = [line for line in done.stdout.splitlines() if line.isdigit()]
        self.assertEqual(counts, ["1", "1", "1", "1", "0", "0"], done.stdout)

    def test_those_of_older_recipes_are_removed(self) -> None:
        done = self.run_script(
            "$BUILDROOT foreign arm64; mkdir $CACHE/skbulk/guest-arm64-0123456789ab\n"
            "$BUILDROOT gc; ls -d $CACHE/skbulk/guest-*/"
        )
        self.assert_succeeds(done, "removing")
        self.assertEqual(done.stdout.splitlines()[-1].count("0123456789ab"), 0)
        self.assertIn("guest-arm64-", done.stdout.splitlines()[-1])


class PlainTest(SandboxTest):
    """The roots in which make test ONLY=deb calls make, and the machine's."""

    def setUp(self) -> None:
        super().setUp()
        (self.apt / "sources.list").write_text(ONE_LINE)
        self.program("mmdebstrap", MADE.replace("root-", "plain-"))

    def test_a_call_makes_those_that_it_needs(self) -> None:
        cases = {
            "deb/guest": "guest",
            "deb/trixie, deb/container": "container trixie",
            "kunit, deb": "bookworm container guest trixie",
            "kunit": "",
        }
        done = self.run_in_root(
            'IFS=";"; for only in $CASES; do\n'
            'rm -rf "$CACHE"/skbulk/plain-*; ONLY=$only "$BUILDROOT" run true\n'
            'echo "made:" $(cd "$CACHE"/skbulk/plain-*/ 2>/dev/null && echo *); done',
            CASES=";".join(cases),
        )
        self.assert_succeeds(done)
        made = [line for line in done.stdout.splitlines() if line.startswith("made:")]
        self.assertEqual(made, [f"made: {names}".strip() for names in cases.values()])

    def test_a_failure_names_its_log(self) -> None:
        self.program("mmdebstrap", "echo 'E: no such suite' >&2; exit 25")
        done = self.run_in_root("ONLY=deb/trixie $BUILDROOT run true")
        self.assert_fails(done, "could not be made", "plain-trixie.log")

    def test_those_of_older_recipes_are_removed(self) -> None:
        done = self.run_in_root(
            "ONLY=deb/guest $BUILDROOT run true; mkdir $CACHE/skbulk/plain-0123456789ab\n"
            "$BUILDROOT gc; cd $CACHE/skbulk; ls -d plain-*/guest; ls -d plain-0* || true"
        )
        self.assert_succeeds(done, "removing", "/guest\n", "No such file")


def _processor_time() -> float:
    """Seconds that children have run; other load does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class CheckTest(SandboxTest):
    """Wrong values are refused at once, with Python on the machine and without."""

    def test_wrong_values(self) -> None:
        cases = {
            "demo CPUS=abc": "make demo takes no CPUS",
            "run SCRIPT=/etc/passwd CPUS=abc": "CPUS=abc: CPUS is a number",
            "run SCRIPT=/etc/passwd CPUS=9": "CPUS=9: CPUS is a number",
            "run SCRIPT=/etc/passwd JUDGE=maybe": "JUDGE=maybe: JUDGE is 0 or 1",
            "demo ACCEL=foo": "ACCEL=foo: ACCEL is one of kvm, tcg",
            "demo CONFIG=kcsan": "CONFIG=kcsan: the demo measures",
            "shell MACHINE=uml CONFIG=perf": "User-Mode Linux has one kernel only",
            "run": "no script to run",
            "run SCRIPT=/nowhere": "SCRIPT=/nowhere: there is no such file",
            "demo KDIR=/nowhere": "KDIR=/nowhere: there is no such folder",
            "demo KDIR=/srv": "KDIR=/srv: this is no kernel tree",
            "dmeo": "there is no verb dmeo",
            # Nothing of the first verb is done if the second is wrong.
            "help dmeo": "there is no verb dmeo",
            "demo test FRAMES=5": "FRAMES=5: FRAMES is a number",
            "demo shell FRAMES=2000 CPUS=99": "CPUS=99: CPUS is a number",
            "shell DRIVR=c": "DRIVR: there is no such variable",
            "patches VERSION=v2": "VERSION=v2: VERSION is a number",
            "patches AUTHOR=me": "AUTHOR=me: this is no name and address",
        }
        self.program("without-python3", "exit 127")
        for python in (True, False):
            if not python:
                (self.top / "bin/without-python3").rename(self.top / "bin/python3")
            for words, message in cases.items():
                with self.subTest(words=words, python=python):
                    before = _processor_time()
                    done = self.run_script(f"make -C $CLONE {words}")
                    self.assert_fails(done, message)
                    self.assertLess(_processor_time() - before, _SOON)
                    self.assertNotIn("build root:", done.stdout)

    def test_a_user_without_a_home(self) -> None:
        for home in ("", "relative"):
            done = self.run_script("make -C $CLONE demo", HOME=home, XDG_CACHE_HOME="")
            self.assert_fails(done, f"no place for the cache: HOME={home} ", "an absolute path")

    def test_a_cache_that_the_kernels_build_refuses(self) -> None:
        done = self.run_script("make -C $CLONE demo", HOME="/srv/a b", XDG_CACHE_HOME="")
        self.assert_fails(done, "/srv/a b/.cache/skbulk: the kernel's build takes no path")

    def test_a_variable_of_one_verb_of_two(self) -> None:
        good = "SKBULK_GOALS='demo test' SKBULK_GIVEN='FRAMES ONLY' FRAMES=2000 ONLY=lint"
        for _ in ("with Python", "without"):
            self.assert_succeeds(self.run_script(f"{good} $BUILDROOT check test"))
            self.program("python3", "exit 127")

    def test_good_values_pass_without_python(self) -> None:
        self.program("python3", "exit 127")
        good = "SKBULK_GIVEN='SCRIPT CPUS' SCRIPT=/etc/passwd CPUS=4 SKBULK_HOST=no DRIVER=./mine"
        done = self.run_script(f"{good} $BUILDROOT check run")
        self.assert_succeeds(done)


class EnterTest(SandboxTest):
    """The clone, the cache and files named by variables may be anywhere."""

    def test_the_clone_below_opt(self) -> None:
        done = self.run_in_root(
            "mkdir -p /opt/a/b && cp -a $CLONE/tools /opt/a/b/\n/opt/a/b/tools/buildroot enter pwd"
        )
        self.assert_succeeds(done, "/opt/a/b")

    def test_host_zero_is_the_build_root(self) -> None:
        done = self.run_in_root("$BUILDROOT run env", SKBULK_HOST="0")
        self.assert_succeeds(done, "SKBULK_ROOT=")

    def test_a_script_beside_files_of_debian(self) -> None:
        # This file is added to those of the root's own /etc/apt.
        (self.apt / "try.sh").write_text("echo tried\n")
        done = self.run_in_root(
            "umount /etc/apt && ls -R /etc/apt >$TOP/before && mount --bind $TOP/apt /etc/apt\n"
            "$BUILDROOT enter bash -c 'bash $SCRIPT; rm /etc/apt/try.sh; "
            "mount | grep -c /etc/apt; ls -R /etc/apt' | tee $TOP/after\n"
            "grep -v try.sh $TOP/after | grep -Fxf - $TOP/before | wc -l; wc -l <$TOP/before",
            SCRIPT="/etc/apt/try.sh",
        )
        self.assert_succeeds(done, "tried")
        *_, kept, had = done.stdout.split()
        self.assertEqual(kept, had, done.stdout)

    def test_own_places_in_folders_of_debian(self) -> None:
        done = self.run_in_root(
            "mkdir -p /usr/src/linux /usr/local/deep/er /srv/cfg\n"
            "echo tree >/usr/src/linux/Makefile; echo mine >/usr/local/deep/er/mine.rs\n"
            "echo one >/srv/cfg/one; echo two >/srv/cfg/two\n"
            "$BUILDROOT enter bash -c 'cat $KDIR/Makefile $DRIVER/mine.rs $CONFIG_EXTRA'",
            KDIR="/usr/src/linux",
            DRIVER="/usr/local/deep/er",
            CONFIG_EXTRA="/srv/cfg/one /srv/cfg/two",
        )
        self.assert_succeeds(done, "tree\nmine\none\ntwo\n")

    def test_a_home_that_the_shell_has_left_alone(self) -> None:
        done = self.run_in_root(
            "mkdir -p /srv/home/er && echo mine >/srv/home/er/mine.rs\n"
            "HOME=/srv/home $BUILDROOT enter bash -c 'cat $DRIVER/mine.rs'",
            DRIVER="~/er",
        )
        self.assert_succeeds(done, "mine\n")

    def test_the_duration_includes_the_making_of_the_root(self) -> None:
        began = time.monotonic()
        done = self.run_in_root(
            "rm $root/.skbulk-complete\n"
            "touch $TOP/said; exec 8>$CACHE/skbulk/root.lock; flock 8\n"
            "(until grep -q waiting $TOP/said; do sleep 0.01; done\n"
            "sleep 1; touch $root/.skbulk-complete) &\n"
            "exec 8>&-; $BUILDROOT enter python3 -c "
            "'from testbed.env import Env; from testbed.host.ui import since_start; "
            'Env.read("demo"); print(since_start())\' 2>&1 | '
            "tee $TOP/said",
            # That of a verb inside of which this test runs.
            SKBULK_BEGAN="1",
        )
        self.assert_succeeds(done, "waiting: another skbulk is making the build root")
        took = float(done.stdout.split()[-1])
        self.assertGreater(took, 1.0)
        self.assertLess(took, time.monotonic() - began)

    def test_the_cache_below_srv(self) -> None:
        done = self.run_in_root(
            "echo kept >$CACHE/skbulk/file\n$BUILDROOT enter bash -c 'cat $SKBULK_CACHE/file'",
            CACHE="/srv/some/cache",
            XDG_CACHE_HOME="/srv/some/cache",
        )
        self.assert_succeeds(done, "kept")

    def test_a_user_without_root(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("the test itself needs root, to be another user")
        done = self.run_in_root(
            "mkdir -p /opt/clone /usr/src/linux && cp -a $CLONE/tools /opt/clone/\n"
            "echo tree >/usr/src/linux/Makefile; chown 1234 $CACHE/skbulk\n"
            "setpriv --reuid=1234 --clear-groups --inh-caps=-all "
            "/opt/clone/tools/buildroot enter bash -c 'pwd; id -u; cat $KDIR/Makefile'",
            KDIR="/usr/src/linux",
            CACHE="/srv/cache",
            XDG_CACHE_HOME="/srv/cache",
        )
        self.assert_succeeds(done, "/opt/clone\n0\ntree\n")

    def test_cargo_builds_of_clones_that_are_gone(self) -> None:
        done = self.run_in_root(
            "cd $CACHE/skbulk; mkdir cargo-1 cargo-2 cargo-3; mkdir /srv/here\n"
            "for n in 1 3; do echo /srv/gone >cargo-$n/clone; done; echo /srv/here >cargo-2/clone\n"
            "for n in 1 2 3; do touch -d 2026-01-0$n cargo-$n; done\n"
            "$BUILDROOT run true; ls -d cargo-?"
        )
        # The newest is what a new clone begins with.
        self.assert_succeeds(done, "removing", "cargo-2\ncargo-3\n")
        self.assertNotIn("\ncargo-1\n", done.stdout)

    def test_nothing_is_removed_while_another_call_uses_the_cache(self) -> None:
        done = self.run_in_root(
            "mkdir -p $CACHE/skbulk/root-0123456789ab; cp -a $CLONE/tools /opt/\n"
            "$BUILDROOT enter sh -c 'cd $SKBULK_CACHE; touch begun; "
            "until [ -e end ]; do sleep 0.1; done' & used=$!\n"
            "until [ -e $CACHE/skbulk/begun ]; do sleep 0.1; done\n"
            "for verb in gc clean distclean; do ! /opt/tools/buildroot $verb || exit 1; done\n"
            "ls $CACHE/skbulk; touch $CACHE/skbulk/end; wait $used; $BUILDROOT gc"
        )
        self.assert_succeeds(done, "in use by another skbulk", "\nroot-0123456789ab\n",
                             "removing")  # fmt: skip

    def test_nothing_is_removed_while_another_call_writes_to_out(self) -> None:
        done = self.run_in_root(
            "mkdir -p /opt/a/out && cp -a $CLONE/tools /opt/a/\n"
            "exec 8>/opt/a/out/.lock; flock 8; /opt/a/tools/buildroot clean || ls -A /opt/a/out"
        )
        self.assert_succeeds(done, "in use by another skbulk: /opt/a/out", "\n.lock\n")

    def test_a_folder_of_debian_itself_is_refused(self) -> None:
        done = self.run_in_root("touch /usr/local/x; $BUILDROOT enter true", KDIR="/usr/local")
        self.assert_fails(done, "KDIR=/usr/local", "part of Debian")

    def test_names_with_blanks(self) -> None:
        done = self.run_in_root(
            "mkdir -p '/srv/my tests' && echo echo tried >'/srv/my tests/a b.sh'\n"
            "$BUILDROOT enter bash -c 'bash \"$SCRIPT\"'",
            SCRIPT="/srv/my tests/a b.sh",
        )
        self.assert_succeeds(done, "tried")

    def test_namespaces_can_be_made_inside(self) -> None:
        done = self.run_in_root("$BUILDROOT enter unshare --user --map-root-user id -u")
        self.assert_succeeds(done, "0")

    def test_nothing_of_the_host_root_is_left_inside(self) -> None:
        done = self.run_in_root("$BUILDROOT enter bash -c 'ls -a /; grep -c old /proc/mounts'")
        self.assertNotIn(".old", done.stdout)

    def test_the_help_names_every_verb(self) -> None:
        done = self.run_script("$BUILDROOT help")
        for verb in ("path", "mirror", "make", "enter", "run", "gc", "clean", "distclean"):
            self.assertIn(f"tools/buildroot {verb}", done.stdout)
        self.assertEqual(done.returncode, 0)
        self.assertTrue((CLONE / "tools/packages").exists())
