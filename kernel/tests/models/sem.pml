/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shared semaphore: one word, its waiters, their turns (docs/semaphores.md).
 *
 * Three systems with a thread each, which locks a mutex ROUNDS times (the third one once, the
 * second one twice at most). A thread locks directly if possible, like a process that has mapped
 * the word; otherwise through its kernel. A semaphore of value 1 is the same, but has no owner.
 * Each step is one load, one store or one locked instruction.
 *
 * Checked: one thread at a time has the lock. A thread that gets it after a death gets EOWNERDEAD,
 * and not before the dead system has been recovered. A thread that has requested its turn (ASKED)
 * waits for each other system at most once. No thread sleeps forever, which would be a deadlock
 * here. Sleepers wake only by a ring of the bell, so that each ring shows its effect. After a death
 * they also check without a ring (LOOK_NS), because no system rings for a dead one.
 *
 *   DEATHS    number of systems that die, at any point; some are recovered late
 *   REBOOT    a dead system joins again, in the same slot, as the same member, and locks again
 *   TIMEOUTS  how often a sleeper gives up, perhaps just when the bell rings for it
 *   PATIENT   no thread requests a turn: any thread may take a free lock
 *   EAGER     all threads immediately request a turn, and none locks without the kernel
 *
 * Memory is sequentially consistent here: all relevant steps are locked instructions, and there is
 * always one between a store and a load of another word.
 *
 * check: ROUNDS=2
 * long: ROUNDS=1 DEATHS=2
 * long: ROUNDS=1 DEATHS=1 REBOOT
 * check: ROUNDS=2 TIMEOUTS=2 PATIENT
 * check: ROUNDS=1 TIMEOUTS=1 DEATHS=1
 * long: ROUNDS=3 EAGER
 * mutant: NO_SECOND_LOOK ROUNDS=2
 * mutant: FLAG_STAYS_AWAY ROUNDS=2
 * mutant: BIT_AFTER_FLAG ROUNDS=2
 * mutant: BLIND_GIVE ROUNDS=1
 * mutant: SLEEP_UNSEEN ROUNDS=1
 * mutant: RING_SWALLOWED ROUNDS=1 TIMEOUTS=1
 * mutant: OVERTAKE ROUNDS=3 EAGER
 * mutant: TURN_OF_ANYBODY ROUNDS=3
 * mutant: DEAD_LET_GO ROUNDS=1 DEATHS=1
 * mutant: NOT_TOLD ROUNDS=1 DEATHS=1
 * mutant: NAME_WITHOUT_GENERATION ROUNDS=1 DEATHS=1 REBOOT
 */
#define N 3
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef TIMEOUTS
#define TIMEOUTS 0
#endif

/* The word: owner (slot + 1, generation of the member) and flags. One byte represents it. */
#define OWNER(w)	((w) & 3)
#define GEN(w)		(((w) >> 2) & 1)
#define DIED		16
#define ASKED		32
#define WAITERS		64
#define ME		((p + 1) | (gen[p] << 2))
#define HAS_OWNER(w)	(OWNER(w) != 0)

byte word, waiters;
byte last = N - 1;		/* the system that had its turn last */

mtype = { LIVE, DEAD, FREE };	/* a slot: RECOVERING counts as DEAD */
mtype state[N] = LIVE;
bool running[N] = true;
bit gen[N];			/* of the member: differs in each life */
bool rung[N];

/* For the checks only */
byte inside;			/* slot + 1 */
/* a thread died with the lock, and no thread has got EOWNERDEAD yet */
bool dirty;
byte turns[9];			/* [p * 3 + q]: q has had its turn since p's bit was set */
byte deaths, timeouts;

#define BIT(p)		(1 << (p))
#define RUNS		(running[p] && state[p] == LIVE)

#ifdef MUTANT_NAME_WITHOUT_GENERATION
#define SAME(w)		true
#else
#define SAME(w)		(GEN(w) == gen[OWNER(w) - 1])
#endif
#ifdef MUTANT_DEAD_LET_GO
#define LEFT(w)		(HAS_OWNER(w) && (!SAME(w) || state[OWNER(w) - 1] != LIVE))
#else
#define LEFT(w)		(HAS_OWNER(w) && (!SAME(w) || state[OWNER(w) - 1] == FREE))
#endif

/* The first live system with sleepers behind the one that had its turn last. N: none. */
#define W(i)		(waiters & BIT((last + (i)) % N) && state[(last + (i)) % N] == LIVE)
#define NEXT		(W(1) -> (last + 1) % N : (W(2) -> (last + 2) % N : (W(3) -> last : N)))

#ifdef MUTANT_OVERTAKE
#define MAY_TAKE	true
#else
#define MAY_TAKE	(!(seen & ASKED) || (queued && NEXT == p))
#endif
#ifdef MUTANT_TURN_OF_ANYBODY		/* any system that takes the lock has had a turn */
#define WAS_TURN	queued
#else
#define WAS_TURN	(queued && seen & ASKED)
#endif

/* Takes and leaves the critical section, with a step in between, in which the system may die. */
inline enter(told) {
	assert(inside == 0 || (dirty && told));
	assert(!dirty || told);
	inside = p + 1; dirty = false
}

/* Records that a system has its turn, for all waiters. */
inline note_turn() {
	if
	:: seen & ASKED && queued ->
		for (q : 0 .. N - 1) {
			if
			:: q != p && waiters & BIT(q) && state[q] == LIVE && running[q] ->
				turns[q * 3 + p]++;
				assert(deaths > 0 || turns[q * 3 + p] <= 1)
			:: else
			fi
		}
	:: else
	fi
}

inline ring_next() {
	d_step {
		to = NEXT;
		if :: to < N -> rung[to] = true :: else fi;
		to = 0
	}
}

proctype System(byte p) {
	byte seen, left, to, q, round;
	bool queued, told;

	round = (p == 2 -> ROUNDS - 1 : (p == 1 && ROUNDS > 2 -> ROUNDS - 2 : 0));
begin:
	do
	:: round == ROUNDS -> goto done
	:: round < ROUNDS ->
#ifndef EAGER
		/* sg_semw_take(): without the kernel */
		if
		:: d_step { RUNS && word == 0 -> word = ME; told = false; enter(told) }
			goto have
		:: d_step { RUNS && word != 0 -> skip }
		:: !RUNS -> goto dead
		fi;
#endif
look:		/* look_mutex() */
		if
		:: d_step { RUNS -> seen = word }
		:: !RUNS -> goto dead
		fi;
		if
		:: !HAS_OWNER(seen) || LEFT(seen) ->
			if
			:: d_step {
				RUNS && MAY_TAKE && word == seen ->
				assert(!HAS_OWNER(seen) || !SAME(seen) || state[OWNER(seen) - 1] == FREE);
#ifdef MUTANT_NOT_TOLD
				told = false;
#else
				told = (LEFT(seen) || seen & DIED);
#endif
				word = ME | (seen & WAITERS) | (told -> DIED : 0);
				note_turn();
				enter(told)
			   }
				if
				:: d_step { RUNS && WAS_TURN -> last = p }
				:: d_step { RUNS && !WAS_TURN -> skip }
				:: !RUNS -> goto dead
				fi;
				goto got
			:: RUNS && MAY_TAKE && word != seen -> goto look
			:: RUNS && !MAY_TAKE -> goto not_yet
			:: !RUNS -> goto dead
			fi
		:: else -> goto not_yet
		fi;

/* queue(), then sg_sem_not_yet(): sets the bit, checks again, sets the flag, sleeps */
not_yet:
#ifdef MUTANT_BIT_AFTER_FLAG
		if
		:: queued = true
		:: !RUNS -> goto dead
		fi;
#else
		if
		:: d_step {
			RUNS && (!queued || !(waiters & BIT(p))) ->
			waiters = waiters | BIT(p);
			if
			:: !queued -> turns[p * 3] = 0; turns[p * 3 + 1] = 0; turns[p * 3 + 2] = 0
			:: else
			fi;
			queued = true
		   }
			goto look
		:: RUNS && queued && waiters & BIT(p)
		:: !RUNS -> goto dead
		fi;
#endif
		left = seen | WAITERS;
		if
#ifndef EAGER
		:: true
#endif
#ifndef PATIENT
		:: left = left | ASKED
#endif
		fi;
#ifdef MUTANT_SLEEP_UNSEEN		/* stores the flag over any newer word */
		if
		:: d_step { RUNS -> word = left; left = 0; seen = 0 }
#else
		if
		:: d_step { RUNS && word == seen -> word = left; left = 0; seen = 0 }
		:: RUNS && word != seen -> left = 0; goto look
#endif
		:: !RUNS -> goto dead
		fi;
#ifdef MUTANT_BIT_AFTER_FLAG
		if
		:: d_step { RUNS -> waiters = waiters | BIT(p) }
		:: !RUNS -> goto dead
		fi;
#endif
		/* asleep */
		if
		:: d_step { RUNS && rung[p] -> rung[p] = false }
			goto look
		:: RUNS && deaths > 0 -> goto look
		:: d_step { RUNS && timeouts < TIMEOUTS -> timeouts++ }
			goto give_up
		:: !RUNS -> goto dead
		fi;

give_up:	/* leave(), pass_on() */
		if
		:: d_step { RUNS -> waiters = waiters & ~BIT(p); queued = false; rung[p] = false }
		:: !RUNS -> goto dead
		fi;
#ifndef MUTANT_RING_SWALLOWED
		if
		:: RUNS && word & WAITERS -> ring_next()
		:: RUNS && !(word & WAITERS)
		:: !RUNS -> goto dead
		fi;
#endif
		round++;
		goto begin;

got:		/* leave() */
		if
		:: d_step { RUNS -> waiters = (queued -> waiters & ~BIT(p) : waiters); queued = false; rung[p] = false }
		:: !RUNS -> goto dead
		fi;

have:		/* makes the mutex consistent */
		if
		:: d_step { RUNS && told -> word = word & ~DIED; told = false }
		:: d_step { RUNS && !told -> skip }
		:: !RUNS -> goto dead
		fi;
		/* sg_semw_give(), or sg_sem_unlock() */
		if
		:: d_step { RUNS && word == ME -> inside = 0; word = 0 }
			goto given
#ifdef MUTANT_BLIND_GIVE
		:: d_step { RUNS -> inside = 0; word = 0 }
			goto given
#endif
		:: d_step { RUNS && word != ME -> skip }
		:: !RUNS -> goto dead
		fi;
give:		if
		:: d_step { RUNS -> seen = word }
		:: !RUNS -> goto dead
		fi;
		if
		:: d_step { RUNS -> left = (waiters -> WAITERS | (seen & ASKED) : 0) }
		:: !RUNS -> goto dead
		fi;
		if
		:: d_step { RUNS && word == seen -> inside = 0; word = left; seen = 0 }
		:: d_step { RUNS && word != seen -> left = 0 }
			goto give
		:: !RUNS -> goto dead
		fi;
/* assumes that no waiter has come since the check before the release */
#ifdef MUTANT_NO_SECOND_LOOK
		if
		:: RUNS && left -> ring_next()
		:: RUNS && !left
		:: !RUNS -> goto dead
		fi;
#else
		/*
		 * a thread that came in between sleeps, but its flag is cleared now: sets the flag
		 * again, then rings
		 */
#ifndef MUTANT_FLAG_STAYS_AWAY
		if
		:: d_step { RUNS && !left && waiters -> word = word | WAITERS }
		:: RUNS && (left || !waiters)
		:: !RUNS -> goto dead
		fi;
#endif
		if
		:: RUNS -> ring_next()
		:: !RUNS -> goto dead
		fi;
#endif
		left = 0;
given:		round++
	od;

dead:	skip;
	d_step {
		seen = 0; left = 0; to = 0; queued = false; told = false; rung[p] = false
	}
#ifdef REBOOT
	/*
	 * joins after its slot has been recovered, withdraws its bit, and gets another generation
	 */
	state[p] == FREE;
	d_step { waiters = waiters & ~BIT(p); gen[p] = 1 - gen[p]; state[p] = LIVE; running[p] = true }
	round = ROUNDS - 1;
	goto begin;
#endif
done:	skip
}

/* Deaths, at any moment; each consequence comes at any later time. */
active proctype Fate() {
	byte p;

	atomic { run System(0); run System(1); run System(2) }
	do
	:: deaths < DEATHS ->
		atomic {	/* any of them: d_step would always choose the same one */
			if
			:: running[0] -> p = 0
			:: running[1] -> p = 1
			:: running[2] -> p = 2
			fi;
			running[p] = false;
			if :: inside == p + 1 -> dirty = true :: else fi;
			deaths++
		}
		state[p] = DEAD;	/* fenced */
		/* recovered, by another system or by the next joiner */
		state[p] = FREE
	:: true -> break
	od
}
