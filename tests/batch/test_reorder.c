/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ordered stream of batches, by reorder.h: what is claimed, against a naive walk over the
 * stream; what is taken, whatever the order in which it was put in; seeks, failures, waits. Many
 * threads: test_reorder_threads.c.
 */
#include "base/clock.h"
#include "support/test.h"
#include "support/reorder_fixture.h"

#include <pthread.h>

/* ---- claims -----------------------------------------------------------------------------------
 */

static int claims_are_right(struct world *w, uint32_t n)
{
    struct naive_batch b = naive_first(&w->partition, w->start);
    for (uint32_t seq = 0; seq < n; seq++) {
        struct pstk__slot *s = pstk__slot_begin(w->p.host, 0);
        pstk__reorder_claim(&w->reorder, s);
        const int good = s->seq == seq && s->generation == 0 && naive_is(&b, s);
        pstk__slot_drop(s);
        if (!good)
            return 0;
        b = naive_next(&w->partition, &b);
    }
    return 1;
}

TEST(claims_follow_the_stream_from_epoch_to_epoch)
{
    struct world w;
    uint32_t n_streams = 0;
    for (uint64_t n = 1; n <= 13; n += test_stride(1, 4)) /* one thread: little for TSan */
        for (uint64_t world = 1; world <= 3; world++)
            for (uint64_t global = world; global <= 3 * world; global++)
                for (uint32_t last = PSTK_LAST_DROP; last <= PSTK_LAST_SHORT; last++) {
                    if (last == PSTK_LAST_DROP && global > n)
                        continue; /* no epoch has a batch: open refuses that */
                    for (uint64_t rank = 0; rank < world; rank++) {
                        CHECK_EQ(
                            world_open(&w, &(struct world_config){.partition = {n, global, rank,
                                                                                world, last},
                                                                  .n_slots = 1}),
                            0);
                        for (uint64_t position = 0; position <= n; position++) {
                            CHECK_EQ(reorder_again(&w, (struct pstk__cursor){2, position}), 0);
                            CHECK(claims_are_right(&w, 20));
                            n_streams++;
                        }
                        world_close(&w);
                    }
                }
    CHECK(n_streams > 1000);
}

/* ---- put in any order, taken in order ---------------------------------------------------------
 */

TEST(slots_put_in_any_order_are_taken_in_order)
{
    for (int uploads = 0; uploads < 2; uploads++)
        for (uint32_t order = 0; order < 256; order++) {
            const uint32_t at[4] = {order & 3, order >> 2 & 3, order >> 4 & 3, order >> 6};
            struct pstk__slot *s[4];
            struct world w;
            uint64_t next = 0;
            if ((1u << at[0] | 1u << at[1] | 1u << at[2] | 1u << at[3]) != 15)
                continue;
            CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0},
                                                           .n_slots = 4,
                                                           .n_device_slots = uploads ? 4 : 0}),
                     0);
            for (int k = 0; k < 4; k++)
                s[k] = claim(&w);
            for (uint32_t k = 0; k < 4; k++) {
                struct pstk__eventcount *eventcount =
                    uploads ? &w.reorder.uploads : &w.reorder.delivery;
                const uint32_t before = pstk__eventcount_ticket(eventcount);
                put(&w, s[at[k]]);
                /* The waiting thread is woken, and by nothing else. */
                CHECK_EQ(pstk__eventcount_ticket(eventcount) - before, at[k] == next);
                for (struct pstk__slot *taken = take_now(&w); taken; taken = take_now(&w)) {
                    CHECK_EQ(taken->seq, next++);
                    pstk__slot_release(taken, NULL);
                }
                uint32_t n_there = 0; /* in a row from the first on */
                for (uint32_t i = 0; i <= k; i++)
                    for (uint32_t j = 0; j <= k; j++)
                        if (at[j] == n_there) {
                            n_there++;
                            break;
                        }
                CHECK_EQ(next, n_there);
            }
            world_close(&w);
        }
}

/* The uploader may put in loaded batches in any order too. */
TEST(loaded_batches_put_in_any_order_are_taken_in_order)
{
    for (uint32_t order = 0; order < 27; order++) {
        const uint32_t at[3] = {order % 3, order / 3 % 3, order / 9};
        struct pstk__slot *to[3];
        struct world w;
        uint64_t next = 0;
        if ((1u << at[0] | 1u << at[1] | 1u << at[2]) != 7)
            continue;
        CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0},
                                                       .n_slots = 3,
                                                       .n_device_slots = 3}),
                 0);
        for (int k = 0; k < 3; k++)
            put_one(&w, claim(&w));
        for (int k = 0; k < 3; k++)
            to[k] = upload_begin(&w);
        for (int k = 0; k < 3; k++) {
            const uint32_t before = pstk__eventcount_ticket(&w.reorder.delivery);
            struct pstk__slot *s;
            pstk__reorder_put_loaded(&w.reorder, to[at[k]]);
            CHECK_EQ(pstk__eventcount_ticket(&w.reorder.delivery) - before, at[k] == next);
            for (s = NULL; (s = take_now(&w)); pstk__slot_release(s, NULL))
                CHECK_EQ(s->seq, next++);
        }
        CHECK_EQ(next, 3);
        world_close(&w);
    }
}

TEST(the_uploader_takes_filled_batches_in_order_and_none_before_its_turn)
{
    struct pstk__slot *s[3];
    struct world w;
    CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0},
                                                   .n_slots = 3,
                                                   .n_device_slots = 2}),
             0);
    for (int k = 0; k < 3; k++)
        s[k] = claim(&w);
    CHECK(!pstk__reorder_take_filled(&w.reorder));
    put_one(&w, s[1]);
    put_one(&w, s[2]);
    CHECK(!pstk__reorder_take_filled(&w.reorder));
    put_one(&w, s[0]);
    for (int k = 0; k < 3; k++) {
        CHECK(pstk__reorder_take_filled(&w.reorder) == s[k]);
        CHECK_EQ(state_of(s[k]), PSTK__SLOT_COPYING);
    }
    CHECK(!pstk__reorder_take_filled(&w.reorder));
    for (int k = 0; k < 3; k++)
        pstk__slot_copied(s[k]);
    world_close(&w);
}

TEST(a_filled_batch_wakes_the_uploader_whether_or_not_those_before_it_were_taken)
{
    struct world w;
    CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0},
                                                   .n_slots = 3,
                                                   .n_device_slots = 2}),
             0);
    for (uint32_t k = 0; k < 3; k++) {
        const uint32_t before = pstk__eventcount_ticket(&w.reorder.uploads);
        put_one(&w, claim(&w));
        CHECK_EQ(pstk__eventcount_ticket(&w.reorder.uploads), before + 1);
        CHECK(pstk__reorder_take_filled(&w.reorder)); /* nothing is delivered yet */
    }
    world_close(&w);
}

/* The naive consumer: each batch as the walk over the stream says, 0 at each end of an epoch. */
TEST(an_epoch_ends_with_0_once_and_the_cursor_says_where_the_stream_is)
{
    for (uint64_t n = 2; n <= 7; n++)
        for (uint32_t last = PSTK_LAST_DROP; last <= PSTK_LAST_SHORT; last++)
            for (int uploads = 0; uploads < 2; uploads++) {
                const struct world_config c = {.partition = {n, 2, 0, 1, last},
                                               .n_slots = 2,
                                               .n_device_slots = uploads ? 2 : 0};
                struct world w;
                CHECK_EQ(world_open(&w, &c), 0);
                struct naive_batch b = naive_first(&w.partition, w.start);
                for (int k = 0; k < 12; k++) {
                    struct pstk__slot *s = NULL;
                    if (k > 0 && b.position == 0) { /* with or without a batch there */
                        CHECK_EQ(take(&w, &s), 0);
                        CHECK(!s);
                        CHECK(is_at(&w, b.epoch, 0));
                    }
                    put(&w, claim(&w));
                    CHECK_EQ(take(&w, &s), 1);
                    CHECK(naive_is(&b, s));
                    CHECK(is_at(&w, b.epoch, b.next_position));
                    pstk__slot_release(s, NULL);
                    b = naive_next(&w.partition, &b);
                }
                world_close(&w);
            }
}

TEST(a_stream_that_begins_at_the_end_of_an_epoch_ends_it_first)
{
    struct world w;
    struct pstk__slot *s;
    CHECK_EQ(world_open(&w, &(struct world_config){.partition = {5, 2, 0, 1, PSTK_LAST_DROP},
                                                   .start = {3, 4},
                                                   .n_slots = 2}),
             0);
    CHECK(is_at(&w, 3, 4));
    CHECK_EQ(take(&w, &s), 0);
    CHECK(is_at(&w, 4, 0));
    CHECK_EQ(take(&w, &s), PSTK_ETIMEDOUT);
    put(&w, claim(&w));
    CHECK_EQ(take(&w, &s), 1);
    CHECK(s->batch.epoch == 4 && s->batch.position == 0);
    pstk__slot_release(s, NULL);
    world_close(&w);
}

TEST(a_lease_that_is_refused_leaves_the_batch_for_the_next_take)
{
    for (int uploads = 0; uploads < 2; uploads++) {
        const int refusals[] = {PSTK_EINVAL, PSTK_ETIMEDOUT};
        struct pstk__slot *s;
        struct world w;
        CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0},
                                                       .n_slots = 2,
                                                       .n_device_slots = uploads ? 2 : 0}),
                 0);
        for (uint64_t k = 0; k < 4; k++) {
            put(&w, claim(&w));
            for (int i = 0; i < 2; i++) {
                atomic_store(&w.p.actor.acquires, refusals[i]);
                CHECK_EQ(take(&w, &s), refusals[i]);
                CHECK(!s && is_at(&w, 0, k * 2));
            }
            atomic_store(&w.p.actor.acquires, 0);
            CHECK_EQ(take(&w, &s), 1);
            CHECK_EQ(s->seq, k);
            pstk__slot_release(s, NULL);
        }
        world_close(&w);
    }
}

/* ---- seek -------------------------------------------------------------------------------------
 */

TEST(a_seek_drops_what_was_put_in_and_what_comes_later)
{
    for (uint32_t mask = 0; mask < 16; mask++) {
        struct pstk__slot *s[4], *taken;
        struct world w;
        CHECK_EQ(
            world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0}, .n_slots = 4}), 0);
        for (int k = 0; k < 4; k++)
            s[k] = claim(&w);
        for (int k = 0; k < 4; k++)
            if (mask >> k & 1)
                put_one(&w, s[k]);
        pstk__reorder_seek(&w.reorder, (struct pstk__cursor){7, 6});
        CHECK(is_at(&w, 7, 6));
        for (int k = 0; k < 4; k++) {
            CHECK(pstk__reorder_stale(&w.reorder, s[k]));
            CHECK_EQ(state_of(s[k]), mask >> k & 1 ? PSTK__SLOT_FREE : PSTK__SLOT_FILLING);
            if (!(mask >> k & 1))
                put_one(&w, s[k]);
            CHECK_EQ(state_of(s[k]), PSTK__SLOT_FREE);
        }
        CHECK_EQ(take(&w, &taken), PSTK_ETIMEDOUT);
        struct naive_batch b = naive_first(&w.partition, (struct pstk__cursor){7, 6});
        for (uint64_t k = 0; k < 6; k++) {
            struct pstk__slot *mine = claim(&w);
            CHECK_EQ(mine->seq, 4 + k); /* numbers go on */
            CHECK(!pstk__reorder_stale(&w.reorder, mine));
            put_one(&w, mine);
            CHECK_EQ(take(&w, &taken), 1);
            CHECK(taken == mine && naive_is(&b, taken));
            pstk__slot_release(taken, NULL);
            b = naive_next(&w.partition, &b);
        }
        world_close(&w);
    }
}

/* Another size: the same, and the batches that come are cut at the cursor, to every rule. */
TEST(another_size_begins_a_generation_at_the_cursor)
{
    static const uint64_t sizes[] = {3, 3, 8, 1, 5, 7, 2, 2, 6, 4};
    for (uint32_t k = 0; k < 9 * 3; k++) {
        const uint64_t world = 1 + k / 9;
        struct pstk__slot *s, *taken;
        struct world w;
        CHECK_EQ(world_open(&w, &(struct world_config){.partition = {29, 8 * world, k % world,
                                                                     world, k % 3},
                                                       .n_slots = 3}),
                 0);
        struct pstk__partition p = w.partition;
        struct pstk__cursor at = {0, 0};
        uint64_t generation = 0;
        for (uint32_t i = 0; i < 60; i++) {
            struct pstk__slot *ahead = claim(&w);
            put_one(&w, ahead);
            const uint64_t size = sizes[(i + k) % 10] * world;
            generation += size != p.global_batch;
            const int drops = size != p.global_batch;
            p.global_batch = size;
            pstk__reorder_resize(&w.reorder, size);
            CHECK_EQ(pstk__reorder_stale(&w.reorder, ahead), drops);
            CHECK_EQ(state_of(ahead), drops ? PSTK__SLOT_FREE : PSTK__SLOT_READY);
            CHECK(is_at(&w, at.epoch, at.position));
            CHECK_EQ(pstk__reorder_n_batches(&w.reorder),
                     29 / size + (p.last_batch != PSTK_LAST_DROP && 29 % size != 0));
            const struct naive_batch b = naive_first(&p, at);
            s = drops ? claim(&w) : ahead;
            if (drops)
                put_one(&w, s);
            int r = take(&w, &taken);
            if (b.epoch != at.epoch) { /* nothing is left of the epoch */
                CHECK_EQ(r, 0);
                r = take(&w, &taken);
            }
            CHECK_EQ(r, 1);
            CHECK(taken == s && naive_is(&b, taken) && taken->generation == generation);
            CHECK_EQ(taken->batch.n_rows, size / world);
            pstk__slot_release(taken, NULL);
            at = (struct pstk__cursor){b.epoch, b.next_position};
        }
        world_close(&w);
    }
}

/* The last state of a batch before the seek. */
enum way { CLAIMED, PUT, UPLOADING, LOADED, N_WAYS };

/* Three batches on the way to the device, which gets them in order. */
static int uploads_are_dropped(struct world *w, const enum way *ways)
{
    struct pstk__slot *s[3], *to[3] = {0}, *from[3] = {0}, *taken;
    for (int k = 0; k < 3; k++)
        s[k] = claim(w);
    for (int k = 0; k < 3; k++) {
        if (ways[k] >= PUT)
            put_one(w, s[k]);
        if (ways[k] == UPLOADING)
            to[k] = upload_take(w, &from[k]);
        else if (ways[k] == LOADED)
            pstk__reorder_put_loaded(&w->reorder, upload_begin(w));
    }
    pstk__reorder_seek(&w->reorder, (struct pstk__cursor){1, 0});
    if (pstk__reorder_take_filled(&w->reorder) || n_in(w->p.device, PSTK__SLOT_LOADED) > 0)
        return 0;
    for (int k = 0; k < 3; k++) {
        if (ways[k] == CLAIMED)
            put_one(w, s[k]);
        if (ways[k] == UPLOADING) {
            upload_end(to[k], from[k]);
            pstk__reorder_put_loaded(&w->reorder, to[k]);
        }
    }
    if (n_in(w->p.host, PSTK__SLOT_FREE) != 3 || n_in(w->p.device, PSTK__SLOT_FREE) != 3)
        return 0;
    put(w, claim(w));
    const int good = take(w, &taken) == 1 && taken->seq == 3 && taken->batch.epoch == 1;
    if (good)
        pstk__slot_release(taken, NULL);
    return good;
}

TEST(a_seek_drops_what_is_on_its_way_to_the_device)
{
    for (uint32_t i = 0; i < N_WAYS * N_WAYS * N_WAYS; i++) {
        const enum way ways[3] = {(enum way)(i % N_WAYS), (enum way)(i / N_WAYS % N_WAYS),
                                  (enum way)(i / N_WAYS / N_WAYS)};
        struct world w;
        if (ways[0] < ways[1] || ways[1] < ways[2]) /* the uploader takes them in order */
            continue;
        CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0},
                                                       .n_slots = 3,
                                                       .n_device_slots = 3}),
                 0);
        CHECK(uploads_are_dropped(&w, ways));
        world_close(&w);
    }
}

TEST(a_leased_batch_stays_through_a_seek)
{
    struct pstk__slot *s;
    struct world w;
    CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0}, .n_slots = 2}),
             0);
    put(&w, claim(&w));
    CHECK_EQ(take(&w, &s), 1);
    pstk__reorder_seek(&w.reorder, (struct pstk__cursor){5, 0});
    CHECK_EQ(state_of(s), PSTK__SLOT_LEASED);
    pstk__slot_release(s, NULL);
    CHECK_EQ(n_in(w.p.host, PSTK__SLOT_FREE), 2);
    world_close(&w);
}

TEST(a_seek_to_where_the_stream_is_loses_nothing)
{
    /* An epoch has 5 samples in batches of 2: its end is the beginning of the next one. */
    const struct pstk__cursor here[] = {{0, 4}, {1, 0}, {0, 5}};
    for (int i = 0; i < 3; i++) {
        struct pstk__slot *s;
        struct world w;
        CHECK_EQ(world_open(&w, &(struct world_config){.partition = {5, 2, 0, 1, PSTK_LAST_DROP},
                                                       .n_slots = 4}),
                 0);
        for (int k = 0; k < 4; k++)
            put(&w, claim(&w));
        for (int k = 0; k < 2; k++) {
            CHECK_EQ(take(&w, &s), 1);
            pstk__slot_release(s, NULL);
        }
        pstk__reorder_seek(&w.reorder, here[i]);
        CHECK(is_at(&w, here[i].epoch, here[i].position));
        CHECK_EQ(n_in(w.p.host, PSTK__SLOT_READY), 2);
        if (i != 1) /* it was not said before that the epoch is over */
            CHECK_EQ(take(&w, &s), 0);
        CHECK_EQ(take(&w, &s), 1);
        CHECK(s->seq == 2 && s->batch.epoch == 1 && s->batch.position == 0);
        pstk__slot_release(s, NULL);
        world_close(&w);
    }
}

/* ---- failures ---------------------------------------------------------------------------------
 */

static struct pstk_error error_of(int code, uint64_t number)
{
    struct pstk_error e;
    pstk_error_init(&e, sizeof e);
    pstk__fail(&e, code, PSTK_STAGE_READ, "bad %llu", (unsigned long long)number);
    e.sample_id = number;
    return e;
}

TEST(a_failed_batch_is_an_error_in_its_turn_and_stays_one_until_a_seek)
{
    for (int uploads = 0; uploads < 2; uploads++)
        for (uint64_t bad = 0; bad < 3; bad++)
            for (int to = 0; to < 2; to++) {
                const struct pstk_error e = error_of(PSTK_EBADMSG, 33);
                struct pstk__slot *s[3], *taken;
                struct world w;
                CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0},
                                                               .n_slots = 3,
                                                               .n_device_slots = uploads * 3}),
                         0);
                for (int k = 0; k < 3; k++)
                    s[k] = claim(&w);
                pstk__slot_fail(s[bad], 1, &e);
                for (int k = 2; k >= 0; k--)
                    put(&w, s[k]);
                for (uint64_t k = 0; k < bad; k++) {
                    CHECK_EQ(take(&w, &taken), 1);
                    CHECK_EQ(taken->seq, k);
                    pstk__slot_release(taken, NULL);
                }
                for (int again = 0; again < 3; again++) {
                    CHECK_EQ(take(&w, &taken), PSTK_EBADMSG);
                    CHECK_STR(w.err.message, "bad 33");
                    CHECK_EQ(w.err.sample_id, 33);
                    CHECK(!taken && is_at(&w, 0, bad * 2)); /* the cursor stays at this batch */
                }
                CHECK_EQ(n_in(w.reorder.slots, PSTK__SLOT_FREE), bad + 1);
                /* To it again, or past it. */
                const uint64_t position = (bad + (uint64_t)to) * 2;
                pstk__reorder_seek(&w.reorder, (struct pstk__cursor){0, position});
                CHECK_EQ(n_in(w.reorder.slots, PSTK__SLOT_FREE), 3);
                put(&w, claim(&w));
                CHECK_EQ(take(&w, &taken), 1);
                CHECK_EQ(taken->batch.position, position);
                pstk__slot_release(taken, NULL);
                world_close(&w);
            }
}

TEST(when_a_stage_failed_what_is_ready_is_taken_first_then_its_error_for_good)
{
    for (int uploads = 0; uploads < 2; uploads++)
        for (uint32_t n = 0; n <= 2; n++) {
            const struct pstk_error first = error_of(PSTK_EIO, 1), other = error_of(PSTK_ENOMEM, 2);
            struct pstk__slot *taken;
            struct world w;
            CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0},
                                                           .n_slots = 3,
                                                           .n_device_slots = uploads * 3}),
                     0);
            for (uint32_t k = 0; k < n; k++)
                put(&w, claim(&w));
            struct pstk__slot *hole = claim(&w), *beyond = n < 2 ? claim(&w) : NULL;
            if (beyond)
                put_one(&w, beyond); /* its turn never comes */
            const uint32_t before = pstk__eventcount_ticket(&w.reorder.delivery);
            pstk__reorder_fail(&w.reorder, &first);
            CHECK_EQ(pstk__eventcount_ticket(&w.reorder.delivery), before + 1);
            pstk__reorder_fail(&w.reorder, &other);
            for (uint32_t k = 0; k < n; k++) {
                CHECK_EQ(take(&w, &taken), 1);
                CHECK_EQ(taken->seq, k);
                pstk__slot_release(taken, NULL);
            }
            for (uint64_t again = 0; again < 4; again++) {
                CHECK_EQ(take(&w, &taken), PSTK_EIO);
                CHECK_STR(w.err.message, "bad 1");
                if (again > 0) /* also after a seek */
                    pstk__reorder_seek(&w.reorder, (struct pstk__cursor){again, 0});
            }
            put_one(&w, hole);
            CHECK_EQ(n_in(w.p.host, PSTK__SLOT_FREE), 3);
            world_close(&w);
        }
}

TEST(another_size_keeps_the_error_of_a_sample_until_a_seek)
{
    const struct pstk_error e = error_of(PSTK_EBADMSG, 1);
    struct pstk__slot *taken;
    struct world w;
    CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 4, 0, 1, 0}, .n_slots = 2}),
             0);
    struct pstk__slot *s = claim(&w);
    pstk__slot_fail(s, 0, &e);
    put_one(&w, s);
    CHECK_EQ(take(&w, &taken), PSTK_EBADMSG);
    pstk__reorder_resize(&w.reorder, 2);
    CHECK_EQ(take(&w, &taken), PSTK_EBADMSG);
    CHECK(is_at(&w, 0, 0));
    pstk__reorder_seek(&w.reorder, (struct pstk__cursor){0, 2});
    put_one(&w, claim(&w));
    CHECK_EQ(take(&w, &taken), 1);
    CHECK_EQ(taken->batch.next_position, 4);
    pstk__slot_release(taken, NULL);
    world_close(&w);
}

TEST(when_reading_failed_what_is_filled_is_still_uploaded)
{
    const struct pstk_error e = error_of(PSTK_EIO, 1);
    struct pstk__slot *taken, *from;
    struct world w;
    CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0},
                                                   .n_slots = 3,
                                                   .n_device_slots = 3}),
             0);
    for (int k = 0; k < 3; k++)
        put_one(&w, claim(&w));
    pstk__reorder_fail(&w.reorder, &e);
    for (uint64_t k = 0; k < 3; k++) {
        CHECK_EQ(take(&w, &taken), PSTK_ETIMEDOUT); /* it waits for it: in the array */
        struct pstk__slot *to = upload_take(&w, &from);
        CHECK_EQ(take(&w, &taken), PSTK_ETIMEDOUT); /* and in the uploader's hands */
        upload_end(to, from);
        pstk__reorder_put_loaded(&w.reorder, to);
        CHECK_EQ(take(&w, &taken), 1);
        CHECK_EQ(taken->seq, k);
        pstk__slot_release(taken, NULL);
    }
    CHECK_EQ(take(&w, &taken), PSTK_EIO);
    world_close(&w);
}

TEST(when_the_uploader_failed_only_what_is_loaded_is_taken)
{
    for (int in_hand = 0; in_hand < 2; in_hand++)
        for (uint32_t n_loaded = 0; n_loaded <= 2; n_loaded++) {
            const struct pstk_error e = error_of(PSTK_EIO, 1), other = error_of(PSTK_ENOMEM, 2);
            struct pstk__slot *taken, *from = NULL, *to = NULL;
            struct world w;
            CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0},
                                                           .n_slots = 4,
                                                           .n_device_slots = 3}),
                     0);
            for (int k = 0; k < 4; k++)
                put_one(&w, claim(&w));
            for (uint32_t k = 0; k < n_loaded; k++)
                pstk__reorder_put_loaded(&w.reorder, upload_begin(&w));
            if (in_hand)
                to = upload_take(&w, &from);
            if (n_loaded == 1) /* both stages: the first error is what is said */
                pstk__reorder_fail(&w.reorder, &e);
            pstk__reorder_fail_uploads(&w.reorder, n_loaded == 1 ? &other : &e);
            for (uint32_t k = 0; k < n_loaded; k++) {
                CHECK_EQ(take(&w, &taken), 1);
                CHECK_EQ(taken->seq, k);
                pstk__slot_release(taken, NULL);
            }
            CHECK_EQ(take(&w, &taken), PSTK_EIO);
            pstk__reorder_seek(&w.reorder, (struct pstk__cursor){3, 0});
            CHECK_EQ(take(&w, &taken), PSTK_EIO);
            if (to) {
                upload_end(to, from);
                pstk__reorder_put_loaded(&w.reorder, to);
            }
            CHECK_EQ(n_in(w.p.host, PSTK__SLOT_FREE), 4);
            CHECK_EQ(n_in(w.p.device, PSTK__SLOT_FREE), 3);
            world_close(&w);
        }
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

#define MS 1000000

TEST(a_take_with_every_slot_leased_is_refused_whatever_the_timeout)
{
    const int64_t timeouts[] = {0, 1000 * MS, -1};
    for (int uploads = 0; uploads < 2; uploads++)
        for (int t = 0; t < 3; t++) {
            struct pstk__slot *s[2], *none;
            struct world w;
            CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0},
                                                           .n_slots = 2,
                                                           .n_device_slots = uploads * 2}),
                     0);
            for (int k = 0; k < 2; k++) {
                put(&w, claim(&w));
                CHECK_EQ(take(&w, &s[k]), 1);
            }
            CHECK_EQ(pstk__reorder_take(&w.reorder, &none, NULL, timeouts[t], &w.waited_ns, &w.err),
                     PSTK_ENOBUFS);
            CHECK(!none && strstr(w.err.message, "all 2 slots are leased"));
            CHECK(!strstr(w.err.message, "n_device_slots") == !uploads);
            pstk__slot_release(s[0], NULL);
            CHECK_EQ(take(&w, &none), PSTK_ETIMEDOUT);
            pstk__slot_release(s[1], NULL);
            world_close(&w);
        }
}

TEST(slots_that_are_parked_are_named_when_all_are_in_use)
{
    struct pstk__slot *s[2], *none;
    struct world w;
    CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0},
                                                   .n_slots = 2,
                                                   .n_device_slots = 2}),
             0);
    for (int k = 0; k < 2; k++) {
        put(&w, claim(&w));
        CHECK_EQ(take(&w, &s[k]), 1);
    }
    w.p.actor.n_kept = 1;
    atomic_store(&w.p.actor.releases, 1);
    pstk__slot_release(s[0], NULL);
    CHECK_EQ(take(&w, &none), PSTK_ENOBUFS);
    CHECK(strstr(w.err.message, "all 2 slots are in use, 1 of them released while"));
    atomic_store(&w.p.actor.releases, 0);
    pstk__slot_release(s[1], NULL);
    CHECK_EQ(take(&w, &none), PSTK_ETIMEDOUT);
    world_close(&w);
}

TEST(a_take_waits_as_long_as_it_was_asked_to_and_says_how_long)
{
    const int64_t timeouts[] = {0, 1, 3 * MS, 30 * MS};
    struct pstk__slot *s;
    struct world w;
    CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0}, .n_slots = 2}),
             0);
    for (int t = 0; t < 4; t++) {
        const uint64_t before = w.waited_ns, start = pstk__clock_ns();
        CHECK_EQ(pstk__reorder_take(&w.reorder, &s, NULL, timeouts[t], &w.waited_ns, &w.err),
                 PSTK_ETIMEDOUT);
        const uint64_t passed = pstk__clock_ns() - start;
        CHECK(passed >= (uint64_t)timeouts[t]);
        CHECK(w.waited_ns - before >= (uint64_t)timeouts[t] && w.waited_ns - before <= passed);
    }
    put(&w, claim(&w));
    const uint64_t before = w.waited_ns;
    CHECK_EQ(pstk__reorder_take(&w.reorder, &s, NULL, -1, &w.waited_ns, &w.err), 1);
    CHECK_EQ(w.waited_ns, before); /* it was there */
    CHECK_EQ(w.p.actor.was_quick, 0);
    pstk__slot_release(s, NULL);
    put(&w, claim(&w));
    CHECK_EQ(take(&w, &s), 1);
    CHECK_EQ(w.p.actor.was_quick, 1);
    pstk__slot_release(s, NULL);
    world_close(&w);
}

TEST(an_interrupt_ends_one_wait_and_no_batch_is_lost)
{
    struct pstk__slot *s;
    struct world w;
    CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0}, .n_slots = 2}),
             0);
    pstk__reorder_interrupt(&w.reorder);
    pstk__reorder_interrupt(&w.reorder);
    CHECK_EQ(pstk__reorder_take(&w.reorder, &s, NULL, -1, &w.waited_ns, &w.err), PSTK_EINTR);
    CHECK_EQ(take(&w, &s), PSTK_ETIMEDOUT);
    pstk__reorder_interrupt(&w.reorder);
    put(&w, claim(&w));
    CHECK_EQ(take(&w, &s), 1); /* it does not wait */
    CHECK_EQ(s->seq, 0);
    CHECK_EQ(take(&w, &(struct pstk__slot *){NULL}), PSTK_EINTR);
    put(&w, claim(&w));
    pstk__reorder_interrupt(&w.reorder);
    CHECK_EQ(take(&w, &(struct pstk__slot *){NULL}), 1);
    CHECK_EQ(take(&w, &(struct pstk__slot *){NULL}), PSTK_EINTR); /* before all are leased, */
    CHECK_EQ(take(&w, &(struct pstk__slot *){NULL}), PSTK_ENOBUFS);
    pstk__slot_release(s, NULL);
    pstk__slot_release(&w.p.host->slots[!s->batch.slot], NULL);
    world_close(&w);
}

struct waker {
    struct world *world;
    struct pstk__slot *slot;
    int how;
};

static void *wake(void *user)
{
    const struct waker *k = user;
    const struct pstk_error e = error_of(PSTK_EIO, 1);
    WAIT_UNTIL(atomic_load(&k->world->reorder.delivery.n_waiting) > 0);
    if (k->how == 0)
        put(k->world, k->slot);
    else if (k->how == 1)
        pstk__reorder_interrupt(&k->world->reorder);
    else if (k->how == 2)
        pstk__reorder_fail(&k->world->reorder, &e);
    else
        pstk__reorder_fail_uploads(&k->world->reorder, &e);
    return NULL;
}

TEST(a_wait_ends_when_the_batch_comes_or_a_stage_fails_or_at_an_interrupt)
{
    const int results[] = {1, PSTK_EINTR, PSTK_EIO, PSTK_EIO};
    for (int uploads = 0; uploads < 2; uploads++)
        for (int how = 0; how < 4; how++) {
            struct pstk__slot *s;
            struct world w;
            pthread_t thread;
            CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0},
                                                           .n_slots = 2,
                                                           .n_device_slots = uploads * 2}),
                     0);
            struct waker k = {&w, claim(&w), how};
            CHECK_EQ(pthread_create(&thread, NULL, wake, &k), 0);
            const int r = pstk__reorder_take(&w.reorder, &s, NULL, -1, &w.waited_ns, &w.err);
            pthread_join(thread, NULL);
            CHECK_EQ(r, results[how]);
            CHECK(w.waited_ns > 0);
            if (r == 1)
                pstk__slot_release(s, NULL);
            world_close(&w);
        }
}

/* ---- open and close ---------------------------------------------------------------------------
 */

/* Linked with --wrap: the nth of these calls fails, counted from 1; 0 = none. */
static uint32_t fail_at, n_calls;

static int fails(void)
{
    return fail_at && ++n_calls == fail_at;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

int __real_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a);
int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a);
int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a)
{
    return fails() ? 12 : __real_pthread_mutex_init(m, a);
}

TEST(open_survives_every_failing_allocation_and_close_is_idempotent)
{
    for (uint32_t uploads = 0; uploads < 2; uploads++) {
        struct pstk_error err;
        struct world w;
        uint32_t n = 0;
        int r = PSTK_ENOMEM;
        CHECK_EQ(world_open(&w, &(struct world_config){.partition = {40, 2, 0, 1, 0},
                                                       .n_slots = 2,
                                                       .n_device_slots = uploads * 2}),
                 0);
        pstk__reorder_close(&w.reorder);
        while (r != 0) {
            n_calls = 0;
            fail_at = ++n;
            pstk_error_init(&err, sizeof err);
            r = pstk__reorder_open(&w.reorder, w.p.host, w.p.leased, &w.partition, NULL, w.start,
                                   &err);
            fail_at = 0;
            CHECK_EQ(r, r == 0 ? 0 : PSTK_ENOMEM);
            CHECK_EQ(err.code, r);
            pstk__reorder_close(&w.reorder);
            pstk__reorder_close(&w.reorder);
        }
        CHECK_EQ(n - 1, 2 + uploads); /* the arrays and the lock */
        world_close(&w);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(claims_follow_the_stream_from_epoch_to_epoch),
        CASE(slots_put_in_any_order_are_taken_in_order),
        CASE(loaded_batches_put_in_any_order_are_taken_in_order),
        CASE(the_uploader_takes_filled_batches_in_order_and_none_before_its_turn),
        CASE(a_filled_batch_wakes_the_uploader_whether_or_not_those_before_it_were_taken),
        CASE(an_epoch_ends_with_0_once_and_the_cursor_says_where_the_stream_is),
        CASE(a_stream_that_begins_at_the_end_of_an_epoch_ends_it_first),
        CASE(a_lease_that_is_refused_leaves_the_batch_for_the_next_take),
        CASE(a_seek_drops_what_was_put_in_and_what_comes_later),
        CASE(another_size_begins_a_generation_at_the_cursor),
        CASE(a_seek_drops_what_is_on_its_way_to_the_device),
        CASE(a_leased_batch_stays_through_a_seek),
        CASE(a_seek_to_where_the_stream_is_loses_nothing),
        CASE(a_failed_batch_is_an_error_in_its_turn_and_stays_one_until_a_seek),
        CASE(when_a_stage_failed_what_is_ready_is_taken_first_then_its_error_for_good),
        CASE(another_size_keeps_the_error_of_a_sample_until_a_seek),
        CASE(when_reading_failed_what_is_filled_is_still_uploaded),
        CASE(when_the_uploader_failed_only_what_is_loaded_is_taken),
        CASE(a_take_with_every_slot_leased_is_refused_whatever_the_timeout),
        CASE(slots_that_are_parked_are_named_when_all_are_in_use),
        CASE(a_take_waits_as_long_as_it_was_asked_to_and_says_how_long),
        CASE(an_interrupt_ends_one_wait_and_no_batch_is_lost),
        CASE(a_wait_ends_when_the_batch_comes_or_a_stage_fails_or_at_an_interrupt),
        CASE(open_survives_every_failing_allocation_and_close_is_idempotent),
    };
    return RUN_CASES(cases);
}
