// SPDX-License-Identifier: GPL-2.0
/*
 * File: what processes call
 */

#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "vgpu-uapi.h"
#include "vgpu.h"

/* Pauses of a wait without interrupts grow from the first to the second. */
#define PAUSE_MIN_US 20
#define PAUSE_MAX_US 1000

static int file_open(struct inode *inode, struct file *file)
{
	/* misc_open() keeps the device registered, and so referenced. */
	struct vgpu *vgpu = container_of(file->private_data, struct vgpu, misc);
	struct vgpu_client *client;

	client = kzalloc(sizeof(*client), GFP_KERNEL);
	if (!client)
		return -ENOMEM;
	client->vgpu = vgpu;
	client->file = file;
	kref_get(&vgpu->ref);
	mutex_lock(&vgpu->lock);
	list_add(&client->node, &vgpu->clients);
	mutex_unlock(&vgpu->lock);
	file->private_data = client;
	return nonseekable_open(inode, file);
}

static int file_release(struct inode *inode, struct file *file)
{
	struct vgpu_client *client = file->private_data;
	struct vgpu *vgpu = client->vgpu;
	int idx;

	if (vgpu_enter(vgpu, &idx)) {
		mutex_lock(&vgpu->lock);
		vgpu_channel_close(client);
		mutex_unlock(&vgpu->lock);
		vgpu_leave(idx);
	}
	/* After removal the channel has ended, or is about to. */
	mutex_lock(&vgpu->lock);
	list_del(&client->node);
	mutex_unlock(&vgpu->lock);
	kfree(client);
	vgpu_put(vgpu);
	return 0;
}

/* Its process has exited, or executed another program: its memory is gone. */
static bool has_lost_process(struct vgpu_client *client)
{
	return client->channel && client->process == task_tgid(current) &&
	       client->mm != current->mm;
}

/*
 * Called for each descriptor that a process closes, at exit by its last
 * thread. A forked child may have another, so there may be no release() for
 * long.
 */
static int file_flush(struct file *file, fl_owner_t id)
{
	struct vgpu_client *client = file->private_data;
	int idx;

	if (!vgpu_enter(client->vgpu, &idx))
		return 0;
	mutex_lock(&client->vgpu->lock);
	if (has_lost_process(client))
		vgpu_channel_close(client);
	mutex_unlock(&client->vgpu->lock);
	vgpu_leave(idx);
	return 0;
}

static int file_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct vgpu_client *client = file->private_data;
	int r, idx;

	if (!vgpu_enter(client->vgpu, &idx))
		return -ENODEV;
	r = vgpu_pages_mmap(client, vma);
	vgpu_leave(idx);
	return r;
}

/*
 * Interrupts of the channel
 */

static u64 n_unread(struct vgpu_client *client)
{
	struct vgpu_channel *channel = READ_ONCE(client->channel);

	return channel ? atomic64_read(&channel->n_interrupts) -
				 atomic64_read(&client->n_read)
		       : 0;
}

static bool is_over(struct vgpu_client *client)
{
	return READ_ONCE(client->vgpu->dead) || READ_ONCE(client->revoked);
}

static bool has_news(struct vgpu_client *client)
{
	return n_unread(client) || is_over(client);
}

static __poll_t file_poll(struct file *file, poll_table *table)
{
	struct vgpu_client *client = file->private_data;
	struct vgpu_channel *channel = READ_ONCE(client->channel);

	if (channel)
		poll_wait(file, &channel->wait, table);
	if (is_over(client))
		return EPOLLERR | EPOLLHUP;
	return n_unread(client) ? EPOLLIN | EPOLLRDNORM : 0;
}

static int take_interrupts(struct file *file, u64 *np)
{
	struct vgpu_client *client = file->private_data;
	struct vgpu_channel *channel = READ_ONCE(client->channel);
	int r = 0;

	if (!channel)
		return is_over(client) ? -ECONNRESET : -ENOTCONN;
	if (!(file->f_flags & O_NONBLOCK))
		r = wait_event_interruptible(channel->wait, has_news(client));
	if (r)
		return r;
	if (READ_ONCE(client->vgpu->dead))
		return -ENODEV;
	if (READ_ONCE(client->revoked))
		return -ECONNRESET;
	*np = n_unread(client);
	atomic64_add(*np, &client->n_read);
	return *np ? 0 : -EAGAIN;
}

static ssize_t file_read(struct file *file, char __user *to, size_t size,
			 loff_t *position)
{
	struct vgpu_client *client = file->private_data;
	int r, idx;
	u64 n;

	if (size < sizeof(n))
		return -EINVAL;
	if (!vgpu_enter(client->vgpu, &idx))
		return -ENODEV;
	r = take_interrupts(file, &n);
	vgpu_leave(idx);
	if (r)
		return r;
	return put_user(n, (u64 __user *)to) ? -EFAULT : (ssize_t)sizeof(n);
}

/*
 * Waiting for a word
 */

struct waiter {
	struct vgpu_client *client;
	const u32 *word; /* NULL: the state */
	u32 seen;
};

static bool has_changed(const struct waiter *waiter)
{
	const u32 state = vgpu_channel_peek(waiter->client);

	if (is_over(waiter->client))
		return true;
	if (!waiter->word)
		return state != waiter->seen;
	/* The process loads it again, with an acquire. */
	return state != VGPU_CHANNEL_OPEN ||
	       READ_ONCE(*waiter->word) != waiter->seen;
}

static ktime_t to_ktime(u32 us)
{
	return ns_to_ktime((u64)us * NSEC_PER_USEC);
}

/* Return: 0, -ETIME or -ERESTARTSYS. */
static int sleep_on(struct vgpu_channel *channel, const struct waiter *waiter,
		    u32 timeout_us)
{
	const ktime_t timeout = to_ktime(timeout_us);

	return wait_event_interruptible_hrtimeout(channel->wait,
						  has_changed(waiter), timeout);
}

/* The same on a device without interrupts. */
static int poll_on(const struct waiter *waiter, u32 timeout_us)
{
	const ktime_t end = ktime_add_us(ktime_get(), timeout_us);
	u32 pause_us = PAUSE_MIN_US;
	ktime_t pause;

	while (!has_changed(waiter)) {
		if (ktime_after(ktime_get(), end))
			return -ETIME;
		pause = to_ktime(pause_us);
		set_current_state(TASK_INTERRUPTIBLE);
		schedule_hrtimeout(&pause, HRTIMER_MODE_REL);
		if (signal_pending(current))
			return -ERESTARTSYS;
		pause_us = min_t(u32, pause_us * 2, PAUSE_MAX_US);
	}
	return 0;
}

static int find_word(struct vgpu_client *client, struct vgpu_channel *channel,
		     const struct vgpu_ioc_wait *wait, const u32 **wordp)
{
	struct vgpu *vgpu = client->vgpu;
	const u64 area = vgpu_area_off(vgpu, vgpu_channel_index(vgpu, channel));

	*wordp = NULL;
	if (wait->flags & VGPU_WAIT_F_STATE)
		return wait->offset ? -EINVAL : 0;
	if (wait->offset % sizeof(u32) || wait->offset < area ||
	    wait->offset - area >= VGPU_AREA_SIZE)
		return -EINVAL;
	if (!READ_ONCE(client->is_open))
		return -ENOTCONN;
	*wordp = vgpu->head + wait->offset;
	return 0;
}

static int wait_for(struct vgpu_client *client,
		    const struct vgpu_ioc_wait *wait)
{
	struct vgpu_channel *channel = READ_ONCE(client->channel);
	struct waiter waiter = {.client = client, .seen = wait->seen};
	int r;

	if (wait->flags & ~VGPU_WAIT_F_STATE || wait->reserved)
		return -EINVAL;
	if (!channel)
		return is_over(client) ? -ECONNRESET : -ENOTCONN;
	r = find_word(client, channel, wait, &waiter.word);
	if (r)
		return r;
	/* The state changes with the interrupt of vector 0. */
	if (waiter.word ? channel->has_vector : client->vgpu->n_vectors)
		r = sleep_on(channel, &waiter, wait->timeout_us);
	else
		r = poll_on(&waiter, wait->timeout_us);
	if (READ_ONCE(client->vgpu->dead))
		return -ENODEV;
	if (r == -ETIME)
		return -ETIMEDOUT;
	return r == -ERESTARTSYS ? -EINTR : r;
}

/*
 * ioctl
 */

static void describe(struct vgpu *vgpu, struct vgpu_ioc_info *info)
{
	*info = (struct vgpu_ioc_info){
		.uapi_version = VGPU_UAPI_VERSION,
		.protocol_version = VGPU_PROTOCOL_VERSION,
		.flags = vgpu->n_vectors ? VGPU_INFO_F_INTERRUPTS : 0,
		.n_extents = vgpu->layout.n_extents,
		.shm_size = vgpu->layout.shm_size,
		.extents_off = vgpu->layout.extents_off,
		.status_off = vgpu->layout.status_off,
	};
}

static int ring(struct vgpu_client *client)
{
	struct vgpu_channel *channel = READ_ONCE(client->channel);
	struct vgpu *vgpu = client->vgpu;

	if (!channel || !READ_ONCE(client->is_open))
		return -ENOTCONN;
	vgpu_ring(vgpu,
		  VGPU_DOORBELL_CHANNEL(vgpu_channel_index(vgpu, channel)));
	return 0;
}

/* All arguments in the driver's memory, which is zeroed. */
union argument {
	struct vgpu_ioc_info info;
	struct vgpu_ioc_offer offer;
	struct vgpu_ioc_state state;
	struct vgpu_ioc_extents extents;
	struct vgpu_ioc_wait wait;
};

static int handle(struct vgpu_client *client, unsigned int command,
		  union argument *argument)
{
	switch (command) {
	case VGPU_IOC_INFO:
		describe(client->vgpu, &argument->info);
		return 0;
	case VGPU_IOC_OFFER:
		if (argument->offer.channel)
			return -EINVAL;
		return vgpu_channel_offer(client, &argument->offer);
	case VGPU_IOC_STATE:
		return vgpu_channel_state(client, &argument->state);
	case VGPU_IOC_ACCEPT:
		return vgpu_channel_accept(client, &argument->extents);
	case VGPU_IOC_WAIT:
		return wait_for(client, &argument->wait);
	default:
		return ring(client);
	}
}

static bool is_known(unsigned int command)
{
	switch (command) {
	case VGPU_IOC_INFO:
	case VGPU_IOC_OFFER:
	case VGPU_IOC_STATE:
	case VGPU_IOC_ACCEPT:
	case VGPU_IOC_WAIT:
	case VGPU_IOC_RING:
		return true;
	}
	return false;
}

/* The size is part of the number, so a known number has a size that fits. */
static long file_ioctl(struct file *file, unsigned int command,
		       unsigned long arg)
{
	struct vgpu_client *client = file->private_data;
	const unsigned int size = _IOC_SIZE(command);
	void __user *user = (void __user *)arg;
	union argument argument = {};
	int r, idx;

	if (!is_known(command))
		return -ENOTTY;
	/* Everything but status and header needs a file that may be written. */
	if (command != VGPU_IOC_INFO && !(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (_IOC_DIR(command) & _IOC_WRITE &&
	    copy_from_user(&argument, user, size))
		return -EFAULT;
	if (!vgpu_enter(client->vgpu, &idx))
		return -ENODEV;
	r = handle(client, command, &argument);
	vgpu_leave(idx);
	if (!r && _IOC_DIR(command) & _IOC_READ &&
	    copy_to_user(user, &argument, size))
		return -EFAULT;
	return r;
}

const struct file_operations vgpu_fops = {
	.owner = THIS_MODULE,
	.open = file_open,
	.release = file_release,
	.flush = file_flush,
	.mmap = file_mmap,
	.read = file_read,
	.poll = file_poll,
	.unlocked_ioctl = file_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
