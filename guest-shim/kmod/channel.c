// SPDX-License-Identifier: GPL-2.0
/*
 * Channel: the place of one process in the shared memory
 *
 * The driver makes the guest's steps of an entry on behalf of processes,
 * which cannot write the table themselves, and tells the host who they are.
 * The host's part of an entry is copied word by word. Which channel and which
 * extents belong to whom is decided by private tables: a host that grants an
 * extent twice, or names a place of another channel, is refused.
 *
 * A channel ends with its process, even if a child of that process still has
 * the descriptor. The host is told at once, unless a page of the channel is
 * in a pipe or a transfer: then as soon as it has come back, because the
 * next channel gets the same memory.
 */

#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/math64.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/uidgid.h>

#include "vgpu-uapi.h"
#include "vgpu.h"

#define REGISTER_DOORBELL 12 /* peer << 16 | vector; the host is peer 0 */

#define HOST_WAIT_MS 5000
#define HOST_WAIT_STEP_MS 5
#define DRAIN_MIN_MS 10
#define DRAIN_MAX_MS 1000

/* State and claim, which change together. */
union entry_head {
	struct {
		u32 state;
		u32 claim;
	};
	u64 both;
};

static struct vgpu_shm_header *header_of(struct vgpu *vgpu)
{
	return vgpu->head;
}

static struct vgpu_channel_entry *entry_at(struct vgpu *vgpu, u32 index)
{
	struct vgpu_channel_entry *table = vgpu->head + VGPU_SHM_TABLE_OFF;

	return &table[index];
}

static union entry_head read_head(struct vgpu *vgpu, u32 index)
{
	const u64 *word = (const u64 *)entry_at(vgpu, index);

	/* Partner: the host's store of the state, after its part. */
	return (union entry_head){.both = smp_load_acquire(word)};
}

/* Partner: the host's store of FREE, and its load of OPENING or CLOSING. */
static bool step(struct vgpu *vgpu, u32 index, union entry_head from, u32 state,
		 u32 claim)
{
	const union entry_head to = {.state = state, .claim = claim};
	u64 *word = (u64 *)entry_at(vgpu, index);

	return cmpxchg64(word, from.both, to.both) == from.both;
}

void vgpu_ring(struct vgpu *vgpu, u32 doorbell)
{
	/* writel() orders earlier stores before itself. */
	writel(doorbell, vgpu->registers + REGISTER_DOORBELL);
}

static void ring_control(struct vgpu *vgpu)
{
	struct vgpu_shm_header *header = header_of(vgpu);

	/* Partner: the host's load, before it looks at the channels. */
	smp_store_release(&header->n_requests,
			  READ_ONCE(header->n_requests) + 1);
	vgpu_ring(vgpu, VGPU_DOORBELL_CONTROL);
}

void vgpu_channel_write_boot_id(struct vgpu *vgpu, const u8 *boot_id)
{
	struct vgpu_shm_header *header = header_of(vgpu);

	if (boot_id)
		memcpy(header->boot_id, boot_id, sizeof(header->boot_id));
	else
		memset(header->boot_id, 0, sizeof(header->boot_id));
	WRITE_ONCE(header->is_leaving, !boot_id);
	ring_control(vgpu);
}

static bool has_let_go(struct vgpu *vgpu)
{
	struct vgpu_shm_header *header = header_of(vgpu);

	/* Partner: the host's store, after it has sent its interrupts. */
	if (smp_load_acquire(&header->n_served) !=
	    READ_ONCE(header->n_requests))
		return false;
	for (u32 i = 0; i < vgpu->layout.n_channels; i++)
		if (read_head(vgpu, i).state == VGPU_CHANNEL_CLOSING)
			return false;
	return true;
}

void vgpu_channel_wait_for_host(struct vgpu *vgpu)
{
	for (int ms = 0; ms < HOST_WAIT_MS; ms += HOST_WAIT_STEP_MS) {
		if (has_let_go(vgpu))
			return;
		msleep(HOST_WAIT_STEP_MS);
	}
	pci_warn(vgpu->pci, "the host does not answer\n");
}

/*
 * The end of a channel
 */

static void zap(struct vgpu_client *client, u32 index)
{
	struct vgpu *vgpu = client->vgpu;

	vgpu_pages_zap(client->file, vgpu_area_off(vgpu, index),
		       VGPU_AREA_SIZE);
	for (u32 i = 0; i < vgpu->layout.n_extents; i++)
		if (vgpu->owners[i] == 1 + index)
			vgpu_pages_zap(client->file, vgpu_extent_off(vgpu, i),
				       VGPU_EXTENT_SIZE);
}

static bool is_idle(struct vgpu *vgpu, u32 index)
{
	if (!vgpu_pages_are_idle(vgpu, vgpu_area_off(vgpu, index),
				 VGPU_AREA_SIZE))
		return false;
	for (u32 i = 0; i < vgpu->layout.n_extents; i++)
		if (vgpu->owners[i] == 1 + index &&
		    !vgpu_pages_are_idle(vgpu, vgpu_extent_off(vgpu, i),
					 VGPU_EXTENT_SIZE))
			return false;
	return true;
}

/* An entry that the host has given away meanwhile is left alone. */
static void tell_host(struct vgpu *vgpu, u32 index, u32 claim)
{
	union entry_head head;

	do {
		head = read_head(vgpu, index);
		if (!claim || head.claim != claim ||
		    head.state == VGPU_CHANNEL_FREE ||
		    head.state == VGPU_CHANNEL_CLOSING)
			return;
	} while (!step(vgpu, index, head, VGPU_CHANNEL_CLOSING, claim));
	ring_control(vgpu);
}

/* All of it may go to another process. */
static void finish(struct vgpu *vgpu, u32 index)
{
	struct vgpu_channel *channel = &vgpu->channels[index];

	for (u32 i = 0; i < vgpu->layout.n_extents; i++)
		if (vgpu->owners[i] == 1 + index)
			vgpu->owners[i] = 0;
	tell_host(vgpu, index, channel->claim);
	channel->claim = 0;
	channel->is_draining = false;
}

static void begin_draining(struct vgpu *vgpu, struct vgpu_channel *channel)
{
	channel->is_draining = true;
	vgpu->drain_ms = DRAIN_MIN_MS;
	mod_delayed_work(system_freezable_wq, &vgpu->drain,
			 msecs_to_jiffies(vgpu->drain_ms));
}

void vgpu_channel_drain(struct work_struct *work)
{
	struct vgpu *vgpu =
		container_of(to_delayed_work(work), struct vgpu, drain);
	bool is_left = false;

	mutex_lock(&vgpu->lock);
	for (u32 i = 0; i < vgpu->layout.n_channels && !vgpu->dead; i++) {
		if (!vgpu->channels[i].is_draining)
			continue;
		if (is_idle(vgpu, i))
			finish(vgpu, i);
		else
			is_left = true;
	}
	if (is_left) {
		vgpu->drain_ms = min(vgpu->drain_ms * 2, DRAIN_MAX_MS + 0u);
		mod_delayed_work(system_freezable_wq, &vgpu->drain,
				 msecs_to_jiffies(vgpu->drain_ms));
	}
	mutex_unlock(&vgpu->lock);
}

/* A channel without an accepted page: only the entry has to go back. */
static void forget(struct vgpu_client *client)
{
	client->channel->client = NULL;
	WRITE_ONCE(client->channel, NULL);
	put_pid(client->process);
	client->process = NULL;
	mmdrop(client->mm);
	client->mm = NULL;
}

void vgpu_channel_close(struct vgpu_client *client)
{
	struct vgpu_channel *channel = client->channel;
	struct vgpu *vgpu = client->vgpu;
	u32 index;

	if (!channel)
		return;
	index = vgpu_channel_index(vgpu, channel);
	down_write(&vgpu->map_lock);
	client->revoked = true;
	up_write(&vgpu->map_lock);
	zap(client, index);
	forget(client);
	if (is_idle(vgpu, index))
		finish(vgpu, index);
	else
		begin_draining(vgpu, channel);
	wake_up_all(&channel->wait);
}

void vgpu_channel_close_all(struct vgpu *vgpu)
{
	struct vgpu_client *client;

	list_for_each_entry(client, &vgpu->clients, node)
		vgpu_channel_close(client);
}

void vgpu_channel_finish_all(struct vgpu *vgpu)
{
	for (u32 i = 0; i < vgpu->layout.n_channels; i++)
		if (vgpu->channels[i].is_draining)
			finish(vgpu, i);
}

/*
 * A host that starts afresh knows no channel of before, and may grant their
 * memory again.
 */
static int follow_generation(struct vgpu *vgpu)
{
	struct vgpu_shm_header copy;
	struct vgpu_layout layout;

	if (READ_ONCE(header_of(vgpu)->generation) == vgpu->generation)
		return vgpu->is_stale ? -ESTALE : 0;
	memcpy(&copy, vgpu->head, sizeof(copy));
	vgpu_channel_close_all(vgpu);
	vgpu->is_stale = vgpu_layout_check(&layout, &copy,
					   pci_resource_len(vgpu->pci, 2)) ||
			 memcmp(&layout, &vgpu->layout, sizeof(layout));
	vgpu->generation = copy.generation;
	pci_info_ratelimited(vgpu->pci,
			     "the host started afresh: all channels end%s\n",
			     vgpu->is_stale ? "; bind the driver again" : "");
	if (vgpu->is_stale)
		return -ESTALE;
	vgpu_channel_write_boot_id(vgpu, vgpu->boot_id);
	return 0;
}

/*
 * Opening
 */

static int claim_at(struct vgpu_client *client, u32 index)
{
	const union entry_head free = {.state = VGPU_CHANNEL_FREE};
	struct vgpu *vgpu = client->vgpu;
	struct vgpu_channel *channel = &vgpu->channels[index];
	const u32 claim = get_random_u32() | 1;

	if (channel->client || channel->is_draining)
		return -EAGAIN;
	if (!step(vgpu, index, free, VGPU_CHANNEL_CLAIMED, claim))
		return -EAGAIN;
	channel->client = client;
	channel->claim = claim;
	WRITE_ONCE(client->claim, claim);
	client->process = get_pid(task_tgid(current));
	client->mm = current->mm;
	mmgrab(client->mm);
	atomic64_set(&client->n_read, atomic64_read(&channel->n_interrupts));
	WRITE_ONCE(client->channel, channel);
	return 0;
}

static int claim_any(struct vgpu_client *client)
{
	for (u32 i = 0; i < client->vgpu->layout.n_channels; i++)
		if (!claim_at(client, i))
			return 0;
	return -EAGAIN;
}

/* As field 22 of /proc/PID/stat. */
static u64 start_time(void)
{
	return div_u64(current->group_leader->start_boottime,
		       NSEC_PER_SEC / USER_HZ);
}

static void write_hello(struct vgpu *vgpu, struct vgpu_channel_entry *entry,
			const struct vgpu_ioc_offer *offer)
{
	struct vgpu_channel_entry hello = {
		.protocol_version = offer->protocol_version,
		.protocol_minor = offer->protocol_minor,
		.api_version = offer->api_version,
		.features = offer->features,
		.pid = task_tgid_vnr(current),
		.uid = from_kuid_munged(&init_user_ns, current_uid()),
		.start_time = start_time(),
		.window_base = offer->window_base,
		.window_size = offer->window_size,
		.pid_namespace = task_active_pid_ns(current)->ns.inum,
	};
	char comm[TASK_COMM_LEN];
	const size_t from =
		offsetof(struct vgpu_channel_entry, protocol_version);
	const size_t to =
		offsetof(struct vgpu_channel_entry, host_protocol_version);

	BUILD_BUG_ON(sizeof(comm) != sizeof(hello.comm));
	memcpy(hello.boot_id, vgpu->boot_id, sizeof(hello.boot_id));
	get_task_comm(comm, current->group_leader);
	memcpy(hello.comm, comm, sizeof(comm));
	memcpy((char *)entry + from, (const char *)&hello + from, to - from);
}

/* Return: 0; -ECONNRESET: the host took the entry back. */
static int make_offer(struct vgpu_client *client, struct vgpu_ioc_offer *offer)
{
	struct vgpu_channel *channel = client->channel;
	struct vgpu *vgpu = client->vgpu;
	const u32 index = vgpu_channel_index(vgpu, channel);
	union entry_head head = read_head(vgpu, index);

	if (head.claim != channel->claim)
		return -ECONNRESET;
	if (head.state != VGPU_CHANNEL_CLAIMED &&
	    head.state != VGPU_CHANNEL_REFUSED)
		return -EBUSY;
	write_hello(vgpu, entry_at(vgpu, index), offer);
	if (!step(vgpu, index, head, VGPU_CHANNEL_OPENING, channel->claim))
		return -ECONNRESET;
	ring_control(vgpu);
	offer->channel = index;
	return 0;
}

static int offer_locked(struct vgpu_client *client,
			struct vgpu_ioc_offer *offer)
{
	int r;

	r = follow_generation(client->vgpu);
	if (r)
		return r;
	if (client->revoked || client->is_open)
		return client->revoked ? -ECONNRESET : -EBUSY;
	if (client->channel) {
		r = make_offer(client, offer);
		if (r != -ECONNRESET)
			return r;
		client->channel->claim = 0;
		forget(client);
	}
	r = claim_any(client);
	return r ? r : make_offer(client, offer);
}

int vgpu_channel_offer(struct vgpu_client *client, struct vgpu_ioc_offer *offer)
{
	int r;

	/* A kernel thread has no memory to map anything into. */
	if (!current->mm)
		return -EINVAL;
	mutex_lock(&client->vgpu->lock);
	r = offer_locked(client, offer);
	mutex_unlock(&client->vgpu->lock);
	return r;
}

/*
 * The host's answer
 */

/* Notes that the entry is OPEN. Return: its state; DEAD without one. */
static u32 look(struct vgpu_client *client)
{
	struct vgpu_channel *channel = client->channel;
	union entry_head head;

	head = read_head(client->vgpu,
			 vgpu_channel_index(client->vgpu, channel));
	if (head.claim != channel->claim)
		return VGPU_CHANNEL_DEAD;
	if (head.state == VGPU_CHANNEL_OPEN)
		client->is_open = true;
	return head.state;
}

/* Whether the channel has been open, and may have memory. */
static bool is_ready(struct vgpu_client *client)
{
	if (client->channel)
		look(client);
	return client->channel && client->is_open;
}

u32 vgpu_channel_peek(struct vgpu_client *client)
{
	struct vgpu_channel *channel = READ_ONCE(client->channel);
	union entry_head head;

	if (!channel)
		return VGPU_CHANNEL_DEAD;
	head = read_head(client->vgpu,
			 vgpu_channel_index(client->vgpu, channel));
	/* The channel may belong to another process by now. */
	return head.claim == READ_ONCE(client->claim) ? head.state
						      : VGPU_CHANNEL_DEAD;
}

/* The numbers are for the process; the driver needs none of them. */
static void copy_answer(struct vgpu *vgpu, u32 index, struct vgpu_ioc_state *to)
{
	const struct vgpu_channel_entry *from = entry_at(vgpu, index);

	to->reason = READ_ONCE(from->reason);
	to->host_protocol_version = READ_ONCE(from->host_protocol_version);
	to->host_api_version = READ_ONCE(from->host_api_version);
	to->host_features = READ_ONCE(from->host_features);
	to->detail = READ_ONCE(from->detail);
	to->area_off = READ_ONCE(from->area_off);
	to->first_extent = READ_ONCE(from->first_extent);
	to->n_extents = READ_ONCE(from->n_extents);
	to->worker_pid = READ_ONCE(from->worker_pid);
	to->host_protocol_minor = READ_ONCE(from->host_protocol_minor);
}

static int state_locked(struct vgpu_client *client,
			struct vgpu_ioc_state *state)
{
	struct vgpu *vgpu = client->vgpu;
	u32 index;

	follow_generation(vgpu);
	if (client->revoked) {
		state->state = VGPU_CHANNEL_DEAD;
		state->reason = VGPU_REASON_HOST;
		return 0;
	}
	if (!client->channel)
		return -ENOTCONN;
	index = vgpu_channel_index(vgpu, client->channel);
	state->state = look(client);
	copy_answer(vgpu, index, state);
	if (state->state == VGPU_CHANNEL_OPEN &&
	    state->area_off != vgpu_area_off(vgpu, index))
		return -EPROTO;
	return 0;
}

int vgpu_channel_state(struct vgpu_client *client, struct vgpu_ioc_state *state)
{
	int r;

	mutex_lock(&client->vgpu->lock);
	r = state_locked(client, state);
	mutex_unlock(&client->vgpu->lock);
	return r;
}

static void warn_of_grant(struct vgpu *vgpu, u32 extent)
{
	dev_warn_ratelimited(&vgpu->pci->dev,
			     "the host grants extent %u twice\n", extent);
}

/* Whether host and driver agree that these extents are the channel's. */
static int check_grant(struct vgpu *vgpu, u32 index, u32 first, u32 n)
{
	const u8 *granted = vgpu->head + vgpu->layout.owners_off;

	for (u32 i = first; i < first + n; i++) {
		if (vgpu->owners[i] == 1 + index)
			continue;
		if (READ_ONCE(granted[i]) != 1 + index)
			return -EACCES;
		if (vgpu->owners[i]) {
			warn_of_grant(vgpu, i);
			return -EACCES;
		}
	}
	return 0;
}

/* Under vgpu->lock. Return: 0 and the channel's index, or -errno. */
static int check_accept(struct vgpu_client *client,
			const struct vgpu_ioc_extents *extents, u32 *indexp)
{
	struct vgpu *vgpu = client->vgpu;

	follow_generation(vgpu);
	if (!is_ready(client))
		return -ENOTCONN;
	if (client->mm != current->mm)
		return -EACCES;
	*indexp = vgpu_channel_index(vgpu, client->channel);
	/* Partner: the host's stores to the table, before it announces a grant.
	 */
	smp_rmb();
	return check_grant(vgpu, *indexp, extents->first, extents->n);
}

/* Once more with the pages: the channel may have ended while they were made. */
static int take_extents(struct vgpu_client *client,
			const struct vgpu_ioc_extents *extents)
{
	struct vgpu *vgpu = client->vgpu;
	u32 index;
	int r;

	mutex_lock(&vgpu->lock);
	r = check_accept(client, extents, &index);
	if (!r)
		memset(vgpu->owners + extents->first, 1 + index, extents->n);
	mutex_unlock(&vgpu->lock);
	return r;
}

int vgpu_channel_accept(struct vgpu_client *client,
			const struct vgpu_ioc_extents *extents)
{
	struct vgpu *vgpu = client->vgpu;
	u32 index;
	int r;

	if (!extents->n || extents->first >= vgpu->layout.n_extents ||
	    extents->n > vgpu->layout.n_extents - extents->first)
		return -EINVAL;
	mutex_lock(&vgpu->lock);
	r = check_accept(client, extents, &index);
	mutex_unlock(&vgpu->lock);
	if (!r)
		r = vgpu_pages_add(vgpu, vgpu_extent_off(vgpu, extents->first),
				   (u64)extents->n * VGPU_EXTENT_SIZE);
	return r ? r : take_extents(client, extents);
}

bool vgpu_channel_has(struct vgpu_client *client, u64 off, u64 size)
{
	struct vgpu *vgpu = client->vgpu;
	u32 index, i, end;
	u64 area;

	if (!is_ready(client) || client->mm != current->mm)
		return false;
	index = vgpu_channel_index(vgpu, client->channel);
	area = vgpu_area_off(vgpu, index);
	if (off < vgpu->layout.extents_off)
		return off >= area && off - area < VGPU_AREA_SIZE &&
		       size <= VGPU_AREA_SIZE - (off - area);
	i = (off - vgpu->layout.extents_off) / VGPU_EXTENT_SIZE;
	end = DIV_ROUND_UP(off + size - vgpu->layout.extents_off,
			   VGPU_EXTENT_SIZE);
	for (; i < end; i++)
		if (i >= vgpu->layout.n_extents || vgpu->owners[i] != 1 + index)
			return false;
	return true;
}
