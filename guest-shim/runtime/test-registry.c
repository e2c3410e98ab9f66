/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What object files register
 */

#include "test.h"

#include "runtime/registry.h"

static struct rt_registry registry;
static char keys[1000];

static struct rt_symbol *add(struct rt_image *image, enum rt_symbol_kind kind,
	const void *key, const char *name)
{
	const struct rt_symbol symbol = {
		.key = key, .kind = kind, .name = name, .image = image
	};
	struct rt_symbol *added = rt_registry_add(&registry, &symbol);

	check(added);
	return added;
}

TEST(symbols_are_found_by_kind_and_key)
{
	struct rt_image *image = rt_registry_add_image(&registry, keys);

	check(!rt_registry_find(&registry, RT_FUNCTION, keys));
	for (size_t i = 0; i < sizeof(keys); i++)
		add(image, i % 2 ? RT_FUNCTION : RT_VARIABLE, &keys[i], "name");
	for (size_t i = 0; i < sizeof(keys); i++) {
		const struct rt_symbol *function =
			rt_registry_find(&registry, RT_FUNCTION, &keys[i]);

		check_eq(function != NULL, i % 2);
		check(!function || function->key == &keys[i]);
		check_eq(rt_registry_find(&registry, RT_VARIABLE, &keys[i]) != NULL,
			i % 2 == 0);
	}
	rt_registry_deinit(&registry);
	check_eq(registry.n_symbols, 0);
}

TEST(of_equal_keys_the_last_one_is_found)
{
	struct rt_image *first = rt_registry_add_image(&registry, keys);
	struct rt_image *second = rt_registry_add_image(&registry, keys);

	add(first, RT_FUNCTION, keys, "first");
	add(second, RT_FUNCTION, keys, "second");
	/* The table grows several times, which keeps the order. */
	for (size_t i = 1; i < sizeof(keys); i++)
		add(first, RT_FUNCTION, &keys[i], "other");
	check(rt_registry_find(&registry, RT_FUNCTION, keys)->image == second);
	check(rt_registry_remove_image(&registry, second));
	check(rt_registry_find(&registry, RT_FUNCTION, keys)->image == first);
	check(!rt_registry_remove_image(&registry, second));
	rt_registry_deinit(&registry);
}

TEST(an_image_takes_its_symbols_with_it)
{
	struct rt_image *first = rt_registry_add_image(&registry, keys);
	struct rt_image *second = rt_registry_add_image(&registry, keys);

	for (size_t i = 0; i < sizeof(keys); i++)
		add(i % 3 ? first : second, RT_VARIABLE, &keys[i], "name");
	check(rt_registry_remove_image(&registry, first));
	for (size_t i = 0; i < sizeof(keys); i++)
		check_eq(rt_registry_find(&registry, RT_VARIABLE, &keys[i]) != NULL,
			i % 3 == 0);
	check(registry.images == second && !second->next);
	rt_registry_deinit(&registry);
}

TEST(kernels_of_a_library_are_removed_and_no_others)
{
	struct rt_image *image = rt_registry_add_image(&registry, keys);
	CUlibrary unloaded = (CUlibrary)&keys[1], other = (CUlibrary)&keys[2];

	add(NULL, RT_KERNEL, &keys[0], NULL)->library = unloaded;
	add(NULL, RT_KERNEL, &keys[1], NULL)->library = other;
	/* Of an image that the runtime loaded itself. */
	add(image, RT_KERNEL, &keys[2], NULL)->library = unloaded;
	rt_registry_remove_kernels(&registry, unloaded);
	check(!rt_registry_find(&registry, RT_KERNEL, &keys[0]));
	check(rt_registry_find(&registry, RT_KERNEL, &keys[1]));
	check(rt_registry_find(&registry, RT_KERNEL, &keys[2]));
	rt_registry_deinit(&registry);
}
