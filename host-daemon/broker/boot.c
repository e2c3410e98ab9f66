/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boot: detects a new guest kernel by its boot id
 */

#include <string.h>

#include "broker/boot.h"
#include "broker/channel.h"
#include "broker/vm.h"
#include "vgpu/log.h"

static bool is_boot_id(const uint8_t boot_id[16])
{
	static const uint8_t none[16];

	return memcmp(boot_id, none, sizeof(none)) != 0;
}

/* Processes of the previous kernel ended without closing their channels. */
void boot_note(struct vm *vm, const uint8_t boot_id[16])
{
	struct ledger *ledger = vm->ledger;

	if (!is_boot_id(boot_id) || !memcmp(boot_id, ledger->boot_id, 16))
		return;
	if (is_boot_id(ledger->boot_id) && account_take_log_line(vm->account))
		vgpu_log_info(
			"vm=%s: the VM was reset, channels of the last boot are closed",
			vm->config->name);
	for (uint32_t i = 0; i < vm->layout.n_channels; i++)
		channel_reboot(&vm->channels[i], boot_id);
	/* Last, so that the next broker repeats all if this one dies before. */
	memcpy(ledger->boot_id, boot_id, 16);
}

bool boot_has_greeted(const struct vm *vm)
{
	return is_boot_id(vm->ledger->boot_id);
}

static void read_header_boot_id(const struct vm *vm, uint8_t boot_id[16])
{
	vm_read_shared(boot_id, vm_header(vm)->boot_id, 16);
}

bool boot_is_known(const struct vm *vm)
{
	uint8_t boot_id[16] __attribute__((__aligned__(8)));

	read_header_boot_id(vm, boot_id);
	return is_boot_id(boot_id);
}

void boot_note_header(struct vm *vm)
{
	uint8_t boot_id[16] __attribute__((__aligned__(8)));

	read_header_boot_id(vm, boot_id);
	boot_note(vm, boot_id);
}
