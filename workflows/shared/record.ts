import { patched } from '@temporalio/workflow';
import type {
  MoveAnswer,
  ReadStanding,
  RecordAttention,
  RecordMove,
  Standing,
} from '../../activities/record-inputs';
import type { AnyCallback, CallbackName, CallbackResource } from '../../src/domain/callback';
import { type CommonFacts, type Life, note } from './life';
import { addressOf, isForPerson, markingOf } from './marks';
import { type AuditedAct, datedAudit } from './operator-acts';
import { type Write, writeLocally, writeScheduled } from './persist';
import { createHeed } from './senders';
import { showLife, type View } from './view';

/** The points in which one kind of resource differs from the others when it is written and shown. */
interface RecordTable<Status extends string, Attention extends string, Resource, Change> {
  noun: CallbackResource;
  view: View<Status, Attention>;
  /** How long it waits, as the end of a clause; empty when nothing is due. */
  until: (resource: Resource) => string;
  /** Whether a mark says nothing any more once the resource has moved on to `status`. */
  isPast: (attention: Attention, status: Status) => boolean;
  /** The mark of a callback whose sender is not known: it goes with the next move. */
  senderMark: Attention;
  /** The mark of a callback that can't be read. */
  malformedMark: Attention;
  /** Marks that lateness replaces: any other speaks of more. */
  weakMarks: readonly Attention[];
  /** Marks of lateness itself, which say the least. */
  lateMarks: readonly Attention[];
  /** Facts that are written with the next move, such as the bank's own name for it. */
  known: (resource: Resource) => Partial<Change>;
  /** Keeps in memory what a move says beside its status. */
  remember: (resource: Resource, to: readonly Status[], at: string) => void;
  writeMove: (input: RecordMove<Status, Attention, Change>) => Write<MoveAnswer<Status, Attention>>;
  writeAttention: (
    input: RecordAttention<Attention>,
  ) => Write<MoveAnswer<Status, Attention> | undefined>;
  /** Reads of a resource that is instructed at a bank; a payment is not. */
  readStanding?: (input: ReadStanding) => Write<Standing<Status>>;
  readLoaded?: (input: {
    resource_id: string;
    request_id: string;
  }) => Write<Recorded<Status, Attention>>;
}

interface Recorded<Status extends string, Attention extends string> extends Standing<Status> {
  attention: Attention | null;
}

export interface MoveOptions<Change> {
  /** Fields that change with the status. */
  change?: Partial<Change>;
  audit?: AuditedAct;
  /** Callback that asks for the move. */
  callback_id?: string;
  /** Day on which the bank books it. */
  value_date?: string | undefined;
  /** Written by a scheduled activity. @see writeScheduled */
  scheduled?: boolean;
}

/** The record had moved on without this run: a restored or reset workflow, most likely. */
export class RecordAhead extends Error {
  override readonly name = 'RecordAhead';
}

const HOUR_MS = 3_600_000;

/** How one kind of resource is written and shown: each step is written, then remembered, then shown. */
export function createRecord<
  Status extends string,
  Attention extends string,
  Resource extends Life<Status, Attention, CommonFacts>,
  Change,
>(table: RecordTable<Status, Attention, Resource, Change>) {
  const show = (resource: Resource) => showLife(resource, table.view, table.until(resource));

  const takeOver = (resource: Resource, found: Recorded<Status, Attention>) => {
    resource.status = found.status;
    resource.version = found.version;
    resource.attention = found.attention;
    resource.since = Date.now();
    note(resource, `the record was ahead: the ${table.noun} is ${found.status}`);
    show(resource);
  };

  const setAttention = async (resource: Resource, attention: Attention | null) => {
    if (resource.attention !== attention) {
      await writeLocally(table.writeAttention(markingOf(resource, attention, null)));
      resource.attention = attention;
    }
    show(resource);
  };

  const recordAct = async (resource: Resource, act: AuditedAct, attention: Attention | null) => {
    const marking = markingOf(resource, attention, datedAudit(act));
    const answer = await writeScheduled(table.writeAttention(marking));
    if (answer?.ahead !== undefined) {
      const { status, version, ahead } = answer;
      takeOver(resource, { status, version, attention: ahead.attention });
      throw new RecordAhead(`The ${table.noun} is ${status} in the record.`);
    }
    resource.attention = attention;
  };

  return {
    /** Brings what operators see up to date. */
    show,

    /** Shows one more line of what was tried. */
    tell: (resource: Resource, line: string): void => {
      note(resource, line);
      show(resource);
    },

    /**
     * The one place where a status changes: document, events, postings and memory together.
     * @throws RecordAhead once the resource stands where the record does; nothing was moved
     */
    move: async (
      resource: Resource,
      to: readonly Status[],
      { change, audit, callback_id, value_date, scheduled = false }: MoveOptions<Change> = {},
    ): Promise<void> => {
      const last = to.at(-1);
      if (last === undefined) return;
      const { account_id, livemode } = resource.facts;
      const at = new Date().toISOString();
      const mark = resource.attention;
      const isPast = mark === table.senderMark || (mark !== null && table.isPast(mark, last));
      const attention = isPast && !isForPerson(mark, audit) ? null : mark;
      const write = scheduled ? writeScheduled : writeLocally;
      const moved = await write(
        table.writeMove({
          ...addressOf(resource),
          account_id,
          livemode,
          from: { status: resource.status, version: resource.version },
          to: [...to],
          at,
          attention,
          change: { ...table.known(resource), ...change },
          ...(audit === undefined ? {} : { audit }),
          ...(callback_id === undefined ? {} : { callback_id }),
          ...(value_date === undefined ? {} : { value_date }),
        }),
      );
      resource.status = moved.status;
      resource.version = moved.version;
      resource.since = Date.now();
      resource.attention = moved.ahead === undefined ? attention : moved.ahead.attention;
      resource.snoozedUntil = undefined;
      resource.overdueTold = false;
      if (moved.ahead !== undefined) {
        note(resource, `the record was ahead: the ${table.noun} is ${moved.status}`);
        show(resource);
        throw new RecordAhead(`The ${table.noun} is ${moved.status} in the record.`);
      }
      table.remember(resource, to, at);
      show(resource);
    },

    /** Whether the record stands where this run believes: what is ahead of it is not instructed. */
    isCurrent: async (resource: Resource): Promise<boolean> => {
      const { readStanding } = table;
      if (readStanding === undefined) return true;
      const { id: resource_id, version } = resource;
      const found = await writeLocally(readStanding({ resource_id, version }));
      return found.version === resource.version;
    },

    /** Takes over where the record stands. */
    adopt: async (resource: Resource): Promise<void> => {
      const { readLoaded } = table;
      if (readLoaded === undefined) return;
      const found = await writeScheduled(readLoaded(addressOf(resource)));
      takeOver(resource, found);
    },

    /** Lets a callback act whose sender is known. */
    heed: createHeed<Attention, Resource>({ ...table, show, setAttention }),

    /** Keeps a callback that moves nothing, with its reason. */
    recordUnapplied: async (
      resource: Resource,
      name: CallbackName,
      callback: AnyCallback,
      reason: string,
    ): Promise<void> => {
      const { connector } = resource.facts;
      const about = { resource: table.noun, connector, name, callback, reason };
      await writeLocally((activities) =>
        activities.recordUnapplied({ ...addressOf(resource), ...about }),
      );
    },

    /** Says why it needs a person; null when it no longer does. */
    setAttention,

    /** Marks a callback that can't be read; whoever sends such must not hide what a person looks at. */
    markMalformed: async (resource: Resource): Promise<void> => {
      const { attention } = resource;
      const { senderMark, malformedMark, weakMarks, lateMarks } = table;
      const less = [null, senderMark, malformedMark, ...weakMarks, ...lateMarks];
      if (less.includes(attention) || !patched('keep-mark-over-malformed'))
        await setAttention(resource, malformedMark);
      else show(resource);
    },

    /** Tells operators once that the bank has not done its part in time; it goes on waiting. */
    markOverdue: async (resource: Resource, mark: Attention): Promise<void> => {
      note(resource, `the ${table.noun} is overdue: still ${resource.status}`);
      resource.snoozedUntil = undefined;
      resource.overdueTold = true;
      const { attention } = resource;
      const isWeak = attention === table.senderMark || attention === null;
      if (isWeak || table.weakMarks.includes(attention)) {
        await setAttention(resource, mark);
      } else show(resource);
    },

    /**
     * Keeps an operator's act that moves nothing; the mark becomes what it says.
     * @throws RecordAhead once the resource stands where the record does; the act was not kept
     */
    recordAct,

    /** Clears the mark for a while; past it operators are told again. */
    snooze: async (resource: Resource, act: AuditedAct, hours: number): Promise<void> => {
      await recordAct(resource, act, null);
      resource.snoozedUntil = Date.now() + hours * HOUR_MS;
      resource.overdueTold = false;
      show(resource);
    },
  };
}
