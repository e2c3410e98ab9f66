# SPDX-License-Identifier: Apache-2.0
# The three steps of README.md's "Use it", as they are written there: host, virtual
# machine, guest. The lines are taken from the file.
# shellcheck shell=bash disable=SC2154,SC2016

readme() { python3 "$top/tests/docs/readme.py" "$top/README.md" "$@"; }

# What runs apart from this machine's /run, /etc/group and configuration: the functions of
# this file are there, and $PWD/tree is a checkout whose build folder is $build.
apart() {
	mkdir tree bin
	ln -s "$top"/* tree/
	rm -f tree/build
	ln -s "$build" tree/build
	# The test runs as root, the packages are installed, and nothing
	# is to be installed on this machine.
	cat >bin/sudo <<-'END'
		#!/bin/bash
		case $1 in
		apt-get) exec apt-get -qq --simulate "${@:2}" >/dev/null ;;
		./install.sh) exec ./install.sh --help >/dev/null ;;
		*) exec "$@" ;;
		esac
	END
	chmod +x bin/sudo
	cp /etc/group group
	grep -q '^kvm:' group || echo 'kvm:x:64055:' >>group
	unshare -m bash -euo pipefail -c "
		mount -t tmpfs -o mode=755 tmpfs /run
		mount --bind $PWD/group /etc/group
		$(declare -f readme note "$@")
		me=$me top=$top build=$build tmp=$tmp PATH=$PWD/bin:\$PATH
		$1"
}

# The steps of a reader on the host, with the virtual machine, and in the guest.
readme_steps() {
	local package lines
	bash -euo pipefail -c "cd tree; $(readme Host 1)" >build.out 2>&1
	readme Host 1 ini >tree/vgpud.conf
	lines=$(readme Host 2)
	bash -euo pipefail -c "cd tree; ${lines%$'\n'*}" 2>check.log
	# The last line stays in the foreground.
	setpriv --pdeathsig TERM bash -c "cd tree; exec ${lines##*$'\n'}" 2>vgpud.log &
	until [ -S /run/vgpud/one.sock ]; do
		kill -0 $!
		sleep 0.1
	done
	stat -c '%a %G' /run/vgpud /run/vgpud/one.sock >sockets

	VGPU_BUILD=$build bash -euo pipefail -c "cd tree; $(readme Guest 1)" >package
	package=$(cat package)
	readme Guest 2 >install
	readme User 1 >user
	# Once with bash: the shell of the guest tolerates more.
	mkdir unpacked
	cp "$package" unpacked
	USER=anna bash -euo pipefail -c "cd unpacked; $(cat install)"
	cp "$package" .
	package=${package##*/}
	"$top/qemu/run-guest" --console "$tmp/console" --timeout 150 \
		--qemu "$(readme 'Virtual machine' 1)" \
		--add "$package:/home/anna/$package" --add install --add user \
		--add guest.sh \
		--add /sbin/ldconfig --add /usr/sbin/groupadd --add /usr/sbin/useradd \
		--add /usr/sbin/usermod --add "$build/tests/e2e/e2e-vectoradd" -- \
		sh "$PWD/guest.sh" "$PWD/install" "$build/tests/e2e/e2e-vectoradd" \
		"$PWD/user" >out 2>&1
	kill %1
	wait || true
}

# The guest: a loader that reads its folders, an ordinary user who may use sudo.
guest_side='set -e
PATH=$PATH:/sbin:/usr/sbin
chmod 600 /sys/bus/pci/devices/*/resource[02]
mkdir -p /etc/ld.so.conf.d /etc/udev/rules.d
echo "include /etc/ld.so.conf.d/*.conf" >/etc/ld.so.conf
useradd -M -d /home/anna -s /bin/sh -u 1000 anna
chown -R anna /home/anna
printf "#!/bin/sh\nexec \"\$@\"\n" >/bin/sudo
chmod +x /bin/sudo
cd /home/anna
USER=anna sh -e -c "$(cat $1)"
su anna -c $2
# The ten lines, over what is installed. The shell that they start gets the last one.
cd /home/anna
echo "PATH=/usr/local/bin:/usr/bin:/bin" >/etc/profile
sed -n "/^exec /q;p" $3 >first
USER=anna sh -e first
USER=anna sh -e -c "$(sed -n "s/^\(exec .*\"\).*/\1/p" $3) -c $(sed -n "\$p" $3)"
'

test_the_steps_of_the_readme_lead_to_a_program_that_computes() {
	[ "$(id -u)" -eq 0 ] || skip "the host's step needs root"
	unshare -m true 2>/dev/null || skip "no mount namespaces here"
	nm -D "$build/guest-shim/libcuda.so.1" | grep -q __asan_ &&
		skip_option "no package of a build with sanitizers"
	printf '%s' "$guest_side" >guest.sh
	apart readme_steps || {
		tail -n 20 build.out check.log vgpud.log out >&2
		return 1
	}
	has sockets "755 root"
	has sockets "660 kvm"
	grep -q "^installed in /usr/local/lib/vgpu; members of the group vgpu may" out
	grep -q "0 wrong: PASS" out
	grep -q "vGPU softgpu" out
	grep -q "session ended vm=one .*launches=1 " vgpud.log
}
