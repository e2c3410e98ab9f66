# SPDX-License-Identifier: Apache-2.0
# What test-image.sh runs as root in a Debian guest: each check prints 'NAME: STATUS', and
# the output of its command as lines 'NAME| TEXT'.
# shellcheck shell=bash

here=${BASH_SOURCE[0]%/*}
exec </dev/null >/dev/ttyS1 2>&1
stty -F /dev/ttyS1 raw -echo
export VGPU_LOG=error

# check NAME COMMAND...
check() {
	local name=$1 status=0
	shift
	"$@" >/run/output 2>&1 || status=$?
	echo "$name: $status"
	sed "s/^/$name| /" /run/output
}

# as USER COMMAND...
as() {
	setpriv --reuid "$1" --regid "$1" --init-groups "${@:2}"
}

wait_for() {
	local tries=0
	until [ -e "$1" ]; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || { echo "never $1" && return 1; }
		sleep 0.1
	done
}

# service PROGRAM [ARGUMENT...] : run by the unit of qemu/README.md
service() {
	local unit=/etc/systemd/system/vgpu-example.service status=0
	cp "$here/vgpu-example.service" "$unit"
	mkdir -p "$unit.d"
	cat >"$unit.d/test.conf" <<-END
		[Service]
		ExecStart=
		ExecStart=$here/$*
		Environment=VGPU_LOG=error
		StandardOutput=truncate:/run/service.log
		StandardError=inherit
	END
	systemctl daemon-reload
	systemctl start vgpu-example || status=$?
	cat /run/service.log
	return "$status"
}

# container GROUPS PROGRAM [ARGUMENT] : of files it has the loader, the C library and what
# vgpu-cdi lists
container() {
	local root=/run/container/rootfs
	rm -rf /run/container
	mkdir -p "$root"/{bin,dev,proc,sys,tmp,lib64} "$root/usr/lib/x86_64-linux-gnu"
	ln -s usr/lib "$root/lib"
	cp /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
	cp /lib/x86_64-linux-gnu/lib{c,dl,pthread}.so.[0-9] \
		"$root/usr/lib/x86_64-linux-gnu/"
	cp "$here"/{e2e-vectoradd,reasons-program} "$root/bin/"
	vgpu-cdi list >/run/cdi
	oci_config "$1" "${@:2}" >/run/container/config.json
	crun --root /run/crun run --bundle /run/container vgpu
}

oci_mounts() {
	awk '$1 == "mount" {
		printf ",{\"source\": \"%s\", \"destination\": \"%s\", ", $2, $3
		printf "\"options\": [\"bind\", \"%s\"]}", $4 }' /run/cdi
}

# oci_config GROUPS PROGRAM [ARGUMENT]
oci_config() {
	local node major minor arguments="\"/bin/$2\""
	[ -z "${3:-}" ] || arguments+=", \"$3\""
	node=$(sed -n 's/^node //p' /run/cdi)
	major=$((0x$(stat -c %t "$node"))) minor=$((0x$(stat -c %T "$node")))
	cat <<-END
		{"ociVersion": "1.0.0",
		"process": {"user": {"uid": 1000, "gid": 1000, "additionalGids": [$1]},
			"args": [$arguments], "cwd": "/",
			"env": ["VGPU_LOG=error"]},
		"root": {"path": "rootfs"},
		"mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
			{"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
			"options": ["mode=755"]}$(oci_mounts)],
		"linux": {"namespaces": [{"type": "pid"}, {"type": "mount"},
			{"type": "ipc"}, {"type": "network"}],
		"devices": [{"path": "$node", "type": "c", "major": $major,
			"minor": $minor, "fileMode": $((0660)), "uid": 0,
			"gid": $(getent group vgpu | cut -d : -f 3)}],
		"resources": {"devices": [{"allow": false, "access": "rwm"},
			{"allow": true, "type": "c", "major": $major,
			"minor": $minor, "access": "rw"}]}}}
	END
}

# The device's files as the udev rule makes them, while the kernel's driver is away.
to_sysfs() {
	local device
	device=$(readlink -f /sys/bus/pci/drivers/vgpu/0000:*)
	modprobe -r vgpu
	echo 1 >"$device/enable"
	stat -c '%U %G %a' "$device/resource0" "$device/resource2"
}

all_checks() {
	useradd -m -G vgpu anna
	useradd -m otto
	wait_for /dev/vgpu0
	check node stat -c '%U %G %a' /dev/vgpu0
	check configured grep -rs vgpu /etc/modules /etc/modules-load.d /etc/modprobe.d
	check member as anna "$here/e2e-vectoradd"
	check other as otto "$here/reasons-program" init
	check other-open as otto dd if=/dev/vgpu0 count=0 status=none
	check smi as anna vgpu-smi -L
	check smi-other as otto vgpu-smi -L
	check service service e2e-vectoradd
	check container container "$(getent group vgpu | cut -d : -f 3)" e2e-vectoradd
	check container-other container "" reasons-program init
	check to-sysfs to_sysfs
	check sysfs-member as anna "$here/e2e-vectoradd"
	check sysfs-service service reasons-program init
	check kernel sh -c "dmesg | grep -E 'BUG|Oops|WARNING|Call Trace'"
	check failed-units systemctl --failed --no-legend --plain
	echo "all checks: done"
}

all_checks
