# SPDX-License-Identifier: Apache-2.0
# A Debian guest with systemd, made by qemu/make-image: what the guest package promises
# there to users, services and containers; and cloud-init's for other images.
# shellcheck shell=bash disable=SC2034,SC2154

# image : makes it, or takes the one of the last time, in $image
image() {
	local status=0
	image=$build/image-test
	nm -D "$(product libcuda.so.1)" | grep -q __asan_ &&
		skip_option "no package of a build with sanitizers"
	command -v mmdebstrap >/dev/null || skip "mmdebstrap is missing"
	"$top/qemu/make-image" --dir "$image" --include crun --replace >make.log 2>&1 ||
		status=$?
	[ "$status" -ne 3 ] || skip_option "Debian's packages cannot be had:" \
		"$(tail -n 1 make.log)"
	[ "$status" -eq 0 ] || { cat make.log >&2 && return 1; }
}

# block FILE NUMBER LANGUAGE : a block of code of a page
block() {
	awk -v number="$2" -v language="$3" '
		$0 == "```" { inside = 0 }
		inside
		$0 == "```" language { inside = ++n == number }' "$1"
}

# The accelerator that run-guest has found to work.
accelerator() {
	"$top/qemu/run-guest" --show -- true | sed -n "s/.*'-accel' '\([a-z]*\)'.*/\1/p"
}

# boot : runs the files of ./payload in the guest, output in the file out. The command
# line is the one of qemu/README.md, for files of this test and without its network.
boot() {
	local accel line run="mkdir /opt/test && tar xf /dev/vdb -C /opt/test"
	run+=" && exec bash /opt/test/image-guest.sh"
	tar -C payload -cf payload.tar .
	accel=$(accelerator)
	line=$(block "$top/qemu/README.md" 2 sh | sed "s|build/image/|$image/|g
		s|/run/vgpud/one.sock|$PWD/vgpud.sock|
		s|-accel kvm -accel tcg|-accel $accel|; s|mon:stdio|stdio|
		s|-nic [^ ]*|-nic none|; s|console=ttyS0 quiet|& panic=-1 \$more|")
	more="no_timer_check systemd.run=\"/bin/bash -c '$run'\"" \
		timeout -k 5 170 bash -c "$line \"\$@\"" line -no-reboot -snapshot \
		-drive "file=payload.tar,format=raw,if=virtio,readonly=on" \
		-serial file:out </dev/null >console 2>qemu.log
	has out "all checks: done"
}

# said NAME ROW CODE : the check printed the line of docs/troubleshooting.md
said() {
	sed -n "s/^$1| //p" out >"$1.out"
	has "$1.out" "code $3"
	python3 "$top/tests/reasons/troubleshooting.py" "$top/docs/troubleshooting.md" \
		"$2" "$3" "$1.out"
}

# computed NAME
computed() {
	has out "$1: 0"
	grep -q "^$1| .* 0 wrong: PASS$" out
}

judge() {
	has out "node| root vgpu 660"
	has out "configured: 1"
	computed member
	said other driver-denied 100
	grep -q "^other-open| .*Permission denied$" out
	grep -q "^smi| GPU 0: .*softgpu" out
	expect 1 grep -q "^smi-other| GPU" out
	computed service
	computed container
	said container-other driver-denied 100
	same "files of sysfs" "$(grep -c '^to-sysfs| root vgpu 660$' out)" 2
	computed sysfs-member
	said sysfs-service read-only-sys 100
	has out "kernel: 1"
	expect 1 grep "^failed-units|" out
}

test_debian_guest_serves_users_services_and_containers() {
	# shellcheck source=../../scripts/lib/vgpud.sh
	. "$top/scripts/lib/vgpud.sh"
	image
	mkdir payload
	cp "$top/tests/vm/image-guest.sh" "$build/tests/e2e/e2e-vectoradd" \
		"$build/tests/reasons/reasons-program" payload/
	block "$top/qemu/README.md" 3 ini >payload/vgpu-example.service
	run_dir=$PWD
	start_vgpud soft ivshmem
	# Not `boot || ...`, which would switch set -e off inside.
	set -E
	trap 'cat qemu.log out && tail -n 20 console' ERR
	boot
	stop_vgpud
	judge
	same "sessions that computed" \
		"$(grep -c 'session ended .*launches=1 ' vgpud.log)" 4
}

# With what it imports, unpacked: nothing is installed on this machine.
cloud_init_packages=(cloud-init python3-attr python3-certifi python3-chardet
	python3-configobj python3-distro python3-idna python3-jinja2 python3-json-pointer
	python3-jsonpatch python3-jsonschema python3-markupsafe python3-netifaces
	python3-oauthlib python3-pyrsistent python3-requests python3-serial python3-six
	python3-urllib3 python3-yaml)

fetch_cloud_init() { apt-get -qq download "${cloud_init_packages[@]}"; }

# schema FILE
schema() {
	(cd / && PYTHONPATH=$tmp/usr/lib/python3/dist-packages /usr/bin/python3 \
		-m cloudinit.cmd.main schema --config-file "$1")
}

test_user_data_for_cloud_init_follows_its_schema() {
	local package
	fetch_cloud_init >apt.log 2>&1 || {
		apt-get -qq update >>apt.log 2>&1 || true
		fetch_cloud_init >>apt.log 2>&1
	} || skip_option "Debian's packages cannot be had: $(tail -n 1 apt.log)"
	for package in *.deb; do
		dpkg-deb -x "$package" .
	done
	schema "$top/qemu/cloud-init.yaml"
	sed '/^runcmd:/,$d' "$top/qemu/cloud-init.yaml" >wrong.yaml
	echo 'runcmd: no list' >>wrong.yaml
	expect 1 schema "$PWD/wrong.yaml"
}
