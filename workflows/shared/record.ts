import type {
  Known,
  RecordAttention,
  ResourceState,
  StaleResult,
  TransitionInput,
  TransitionResult,
  Written,
} from '../../activities/shared/record-inputs';
import type {
  AnyCallback,
  CallbackName,
  CallbackResource,
} from '../../src/domain/callback/callback';
import {
  type CallbackSignature,
  VERIFICATION_FAULTS,
  type VerificationFault,
} from '../../src/domain/callback/signature';
import { omitUndefined } from '../../src/domain/defined';
import { applyTaken, mergeMovements, type Taken } from '../../src/domain/movement/movement';
import { now, timestamp } from './clock';
import { findReason, keepsReason } from './movement';
import { type AuditedAct, datedAudit } from './operator-acts';
import { type Write, writeLocally, writeScheduled } from './persist';
import { findRefusal } from './refusal';
import { type CommonFacts, note, updateDetails, type View, type WorkflowState } from './state';

interface Next<Status extends string, Change> {
  to: readonly Status[];
  at: string;
  change: Partial<Change>;
  isAct: boolean;
  /** The bank's, of the movement that a callback reports. */
  reference?: string | undefined;
  /** Movement that an act takes. */
  movement?: string | undefined;
}

export interface RecordTable<Status extends string, Attention extends string, Resource, Change> {
  noun: CallbackResource;
  view: View<Status>;
  /** Waiting time as the end of a clause; empty when nothing is due. */
  until: (resource: Resource) => string;
  /** Whether `status` ends a reason; by default it ends overdue and different amounts. */
  isPast?: (attention: Attention, status: Status) => boolean;
  /** Parts of movements that leave suspense with a transition. */
  take?: (resource: Resource, next: Next<Status, Change>) => Taken[];
  /** Cleared by the next transition. */
  unverifiedReason: Attention;
  malformedReason: Attention;
  givenUpReason: Attention;
  refusedReason: Attention;
  /** Replaced by an overdue reason: any other says more. */
  weakReasons?: readonly Attention[];
  overdueReasons: readonly Attention[];
  getExtraFields?: (resource: Resource) => Partial<Change>;
  remember?: (resource: Resource, next: Next<Status, Change>) => void;
  writeTransition: (
    input: TransitionInput<Status, Attention, Change>,
  ) => Write<TransitionResult<Status, Attention>>;
  writeAttention: (input: RecordAttention<Attention>) => Write<Written<object, Status, Attention>>;
}

export interface StoredState<Status extends string, Attention extends string>
  extends ResourceState<Status> {
  attention: Attention | null;
}

export interface TransitionOptions<Change> {
  change?: Partial<Change>;
  audit?: AuditedAct;
  callback_id?: string;
  /** Makes a repeat known without an event, callback or act. */
  id?: string;
  value_date?: string | undefined;
  /** The bank's, of the movement that a callback reports. */
  reference?: string | undefined;
  /** Movement that an act takes. */
  movement?: string | undefined;
  scheduled?: boolean;
}

/** The database has a later version, as after a restore or a reset of the workflow. */
export class StaleState extends Error {
  override readonly name = 'StaleState';
}

const HOUR_MS = 3_600_000;

export function createRecord<
  Status extends string,
  Attention extends string,
  Resource extends WorkflowState<Status, Attention, CommonFacts>,
  Change,
>(table: RecordTable<Status, Attention, Resource, Change>) {
  const { weakReasons = [], overdueReasons } = table;
  const isPastByDefault = (reason: Attention) =>
    reason === 'amount_differs' || overdueReasons.includes(reason);
  const canClear = table.isPast ?? isPastByDefault;

  const show = (resource: Resource) => {
    const { noun, view } = table;
    updateDetails(resource, { noun, view, until: table.until(resource) });
  };

  const enterState = (resource: Resource, state: StoredState<Status, Attention>) => {
    resource.status = state.status;
    resource.version = state.version;
    resource.transition = state.transition;
    resource.attention = state.attention;
    resource.enteredAt = now(resource);
    resource.snoozedUntil = undefined;
    resource.isOverdueReported = false;
  };

  const applyStored = (resource: Resource, state: StoredState<Status, Attention>) => {
    enterState(resource, state);
    note(resource, `synced from the database: the ${table.noun} is ${state.status}`);
    show(resource);
  };

  /** @throws StaleState, after a sync from the database */
  const throwStale = (resource: Resource, stored: StaleResult<Status, Attention>): never => {
    resource.movements = stored.moved ?? resource.movements;
    applyStored(resource, { ...stored, attention: stored.stale.attention });
    throw new StaleState(`The ${table.noun} is ${stored.status} in the database.`);
  };

  const isKept = (resource: Resource) => keepsReason(resource, resource.movements);

  /** @param isStale the database may have another reason than the known one */
  const setAttention = async (
    resource: Resource,
    attention: Attention | null,
    isStale = false,
  ): Promise<void> => {
    const isSame = !isStale && resource.attention === attention;
    if (isSame || isKept(resource)) return show(resource);
    const answer = await writeLocally(
      table.writeAttention(buildAttention(resource, attention, null)),
    );
    if (answer.stale === undefined) {
      resource.version = answer.version;
      resource.attention = attention;
      if (attention !== null) resource.acknowledged.delete(attention);
    } else if (answer.transition === resource.transition) {
      // A lost task wrote more than this run knows.
      resource.version = answer.version;
      resource.movements = answer.moved ?? resource.movements;
      resource.attention = answer.stale.attention;
      return await setAttention(resource, attention);
    }
    // After a transition of a lost task, the next write decides again.
    show(resource);
  };

  /** Keeps a reason that says more. */
  const flagUnlessMore = async (resource: Resource, reason: Attention) => {
    const less = [null, table.unverifiedReason, reason, ...weakReasons, ...overdueReasons];
    if (less.includes(resource.attention)) await setAttention(resource, reason);
    else show(resource);
  };

  const recordAct = async (
    resource: Resource,
    act: AuditedAct,
    attention: Attention | null,
    more: Pick<RecordAttention<Attention>, 'snoozed_until'> = {},
  ) => {
    const marking = { ...buildAttention(resource, attention, datedAudit(act)), ...more };
    const answer = await writeScheduled(table.writeAttention(marking));
    if (answer.stale !== undefined) return throwStale(resource, answer);
    resource.version = answer.version;
    resource.attention = attention;
  };

  return {
    show,

    logActivity: (resource: Resource, line: string): void => {
      note(resource, line);
      show(resource);
    },

    /**
     * Books a movement, which counts in the version.
     * @throws StaleState after a sync from the database
     */
    book: async <Answer extends object>(
      resource: Resource,
      write: (known: Known) => Write<Written<Answer>>,
    ): Promise<Answer> => {
      const { version, transition } = resource;
      const answer = await writeScheduled(write({ version, transition }));
      if (answer.stale !== undefined) {
        // The activity is that of this kind of resource.
        return throwStale(resource, answer as StaleResult<Status, Attention>);
      }
      resource.version = answer.version;
      show(resource);
      return answer;
    },

    /**
     * Changes the status; no other function does.
     * @throws StaleState after a sync from the database
     */
    transition: async (
      resource: Resource,
      to: readonly Status[],
      {
        change: ownChange,
        audit,
        callback_id,
        id,
        value_date,
        reference,
        movement,
        scheduled = false,
      }: TransitionOptions<Change> = {},
    ): Promise<void> => {
      const last = to.at(-1);
      if (last === undefined) return;
      const { account_id, livemode } = resource.facts;
      const at = timestamp(resource);
      const change = { ...table.getExtraFields?.(resource), ...ownChange };
      const next = { to, at, change, isAct: audit !== undefined, reference, movement };
      const taken = table.take?.(resource, next) ?? [];
      const reason = resource.attention;
      const isPast =
        reason === table.unverifiedReason ||
        reason === 'record_behind' ||
        (reason !== null && canClear(reason, last));
      const isReleased = to.includes('failed' as Status);
      const after = applyTaken(resource.movements, taken).filter(
        (each) => !isReleased || each.direction === 'in',
      );
      const staysOpen = needsOperator(reason, audit) || keepsReason(resource, after);
      const attention = isPast && !staysOpen ? (findReason(after) as Attention | null) : reason;
      const write = scheduled ? writeScheduled : writeLocally;
      const result = await write(
        table.writeTransition({
          ...getResourceRef(resource),
          account_id,
          livemode,
          from: {
            status: resource.status,
            version: resource.version,
            transition: resource.transition,
          },
          to: [...to],
          at,
          attention,
          change,
          ...omitUndefined({ audit, callback_id, id, value_date, reference }),
          ...(taken.length === 0 ? {} : { taken }),
        }),
      );
      if (result.stale !== undefined) throwStale(resource, { ...result, stale: result.stale });
      enterState(resource, { ...result, attention });
      const known = applyTaken(resource.movements, taken);
      resource.movements = mergeMovements(known, result.moved);
      if ('bank_reference' in change) resource.storedReference = String(change.bank_reference);
      table.remember?.(resource, next);
      show(resource);
    },

    applyStored,

    applyVerified: createApplyVerified<Attention, Resource>({ ...table, show, setAttention }),

    recordUnapplied: async (
      resource: Resource,
      name: CallbackName,
      callback: AnyCallback,
      reason: string,
    ): Promise<void> => {
      const { connector } = resource.facts;
      const about = { resource: table.noun, connector, name, callback, reason };
      await writeLocally((activities) =>
        activities.recordUnapplied({ ...getResourceRef(resource), ...about }),
      );
    },

    setAttention,

    /** Stores what the bank calls the resource, since no transition may come for long. */
    noteReference: async (resource: Resource, bank_reference: string): Promise<void> => {
      if (resource.storedReference !== undefined) return;
      const noted = { ...buildAttention(resource, resource.attention, null), bank_reference };
      const answer = await writeLocally(table.writeAttention(noted));
      if (answer.stale === undefined) {
        resource.version = answer.version;
        resource.storedReference = bank_reference;
      }
      show(resource);
    },

    flagMalformed: (resource: Resource): Promise<void> =>
      flagUnlessMore(resource, table.malformedReason),

    /** @param refused why the books refused its entry; absent: the state kept changing */
    flagGivenUp: async (resource: Resource, message: string, refused?: string): Promise<void> => {
      const why = refused ?? 'the state in the database changed each time';
      note(resource, `not applied, since ${why}: ${message}`);
      const reason = refused === undefined ? table.givenUpReason : table.refusedReason;
      await flagUnlessMore(resource, reason);
    },

    flagOverdue: async (resource: Resource, reason: Attention): Promise<void> => {
      note(resource, `the ${table.noun} is overdue: still ${resource.status}`);
      resource.snoozedUntil = undefined;
      resource.isOverdueReported = true;
      const { attention } = resource;
      const isWeak = attention === table.unverifiedReason || attention === null;
      if (isWeak || weakReasons.includes(attention)) {
        await setAttention(resource, reason);
      } else show(resource);
    },

    recordAct,

    /**
     * Clears the attention reason until it comes again.
     * @param expected reason that the operator saw
     * @returns why it can't be acknowledged
     * @throws StaleState after a sync from the database
     */
    acknowledge: async (
      resource: Resource,
      act: AuditedAct,
      expected: string | undefined,
    ): Promise<{ code: string; message: string } | undefined> => {
      const reason = resource.attention;
      if (reason === null || (expected ?? reason) !== reason) {
        const message = `The attention reason is ${reason ?? 'none'}.`;
        return { code: 'wrong_state', message };
      }
      try {
        await recordAct(resource, act, null);
      } catch (error) {
        const message = findRefusal(error, 'money_in_suspense');
        if (message === undefined) throw error;
        return { code: 'money_in_suspense', message };
      }
      resource.acknowledged.add(reason);
      // A reason that said more may have hidden that it is overdue.
      resource.isOverdueReported = overdueReasons.includes(reason);
      show(resource);
      return undefined;
    },

    snooze: async (resource: Resource, act: AuditedAct, hours: number): Promise<void> => {
      const snoozed_until = now(resource) + hours * HOUR_MS;
      const attention = isKept(resource) ? resource.attention : null;
      await recordAct(resource, act, attention, { snoozed_until });
      resource.snoozedUntil = snoozed_until;
      resource.isOverdueReported = false;
      show(resource);
    },
  };
}

function needsOperator(reason: string | null, audit: AuditedAct | undefined): boolean {
  return reason === 'amount_differs' && audit === undefined;
}

/** Makes its time later than the previous one, also within one task. */
function buildAttention<Attention extends string>(
  resource: WorkflowState<string, Attention, CommonFacts>,
  attention: Attention | null,
  audit: RecordAttention<Attention>['audit'],
): RecordAttention<Attention> {
  resource.attentionAt = Math.max(Date.now(), resource.attentionAt + 1);
  const { version, transition, attentionAt: attention_at } = resource;
  return { ...getResourceRef(resource), version, transition, attention, audit, attention_at };
}

function getResourceRef({ id, facts }: WorkflowState<string, string, CommonFacts>) {
  return { resource_id: id, request_id: facts.request_id };
}

interface ReceivedCallback {
  name: CallbackName;
  callback: AnyCallback;
  signature: CallbackSignature | undefined;
}

interface ApplyVerifiedDeps<Attention, Resource> {
  noun: CallbackResource;
  unverifiedReason: Attention;
  show: (resource: Resource) => void;
  setAttention: (resource: Resource, attention: Attention) => Promise<void>;
}

/**
 * Applies each verified callback once; any other is stored and shown.
 * @see docs/connectors.md#prove-who-sends
 */
function createApplyVerified<
  Attention extends string,
  Resource extends WorkflowState<string, Attention, CommonFacts>,
>({ noun, unverifiedReason, show, setAttention }: ApplyVerifiedDeps<Attention, Resource>) {
  return async (
    resource: Resource,
    item: ReceivedCallback,
    act: () => Promise<void>,
  ): Promise<void> => {
    const { verifiedCallbacks } = resource;
    const { callback_id } = item.callback;
    const first = verifiedCallbacks.get(callback_id);
    if (first === undefined) {
      const fault = await getSenderFault(noun, resource, item);
      if (fault !== undefined) {
        await storeUnverified(noun, resource, item, fault);
        // A false callback must not hide another attention reason.
        return resource.attention === null
          ? await setAttention(resource, unverifiedReason)
          : show(resource);
      }
      verifiedCallbacks.set(callback_id, item);
      // The same item is applied again after a stale state.
    } else if (first !== item) return;
    if (resource.appliedIds.has(callback_id)) {
      note(resource, `callback \`${item.name}\` (${callback_id}): applied before`);
      return show(resource);
    }
    await act();
  };
}

type AnyWorkflowState = WorkflowState<string, string, CommonFacts>;

async function getSenderFault(
  noun: CallbackResource,
  resource: AnyWorkflowState,
  item: ReceivedCallback,
): Promise<VerificationFault | undefined> {
  const { verification } = resource;
  const { signature } = item;
  if (signature === undefined) return verification === 'required' ? 'unsigned' : undefined;
  const report = buildReport(noun, resource, item);
  const { fault } = await writeLocally((activities) =>
    activities.checkSender({ report, signature }),
  );
  return fault ?? undefined;
}

async function storeUnverified(
  noun: CallbackResource,
  resource: AnyWorkflowState,
  item: ReceivedCallback,
  code: VerificationFault,
): Promise<void> {
  const { name, callback, signature } = item;
  const { request_id } = resource.facts;
  const report = buildReport(noun, resource, item);
  const proof = signature === undefined ? {} : { signature };
  const at = new Date().toISOString();
  await writeLocally((activities) =>
    activities.recordRefused({ report, ...proof, code, at, request_id }),
  );
  const why = VERIFICATION_FAULTS[code];
  note(resource, `callback \`${name}\` (${callback.callback_id}) is ignored: ${why}`);
}

function buildReport(
  resource: CallbackResource,
  { id, facts }: AnyWorkflowState,
  { name, callback }: ReceivedCallback,
) {
  return { connector: facts.connector, resource, resource_id: id, name, callback };
}
