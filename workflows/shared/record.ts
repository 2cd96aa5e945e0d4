import type {
  Known,
  RecordAttention,
  RecordUnapplied,
  ResourceState,
  StaleResult,
  TransitionInput,
  TransitionResult,
  Written,
} from '../../activities/shared/record-table';
import type {
  AnyCallback,
  CallbackName,
  CallbackResource,
} from '../../src/domain/callback/callback';
import {
  type CallbackSignature,
  type SignedCallback,
  VERIFICATION_FAULTS,
  type VerificationFault,
} from '../../src/domain/callback/signature';
import { omitUndefined } from '../../src/domain/defined';
import { applyTaken, mergeMovements, type Taken } from '../../src/domain/movement/movement';
import type { StoredVerification } from '../../src/domain/payout/payout';
import { now, timestamp } from './clock';
import { findReason, keepsReason } from './movement';
import { type AuditedAct, datedAudit } from './operator-acts';
import { type Write, writeLocally, writeScheduled } from './persist';
import { findRefusal } from './refusal';
import { type CommonFacts, note, updateDetails, type View, type WorkflowState } from './state';

export interface RecordKind {
  status: string;
  attention: string;
  facts: CommonFacts;
  change: object;
}

type Recorded<K extends RecordKind> = WorkflowState<K['status'], K['attention'], K['facts']>;

interface Next<K extends RecordKind> {
  to: readonly K['status'][];
  at: string;
  change: Partial<K['change']>;
  isAct: boolean;
  /** The bank's, of the movement that a callback reports. */
  reference?: string | undefined;
  /** Movement that an act takes. */
  movement?: string | undefined;
}

export interface RecordRules<K extends RecordKind, R extends Recorded<K>> {
  noun: CallbackResource;
  /** Names under which banks report about it; absent: its own. */
  getReported?: (resource: R) => { resource: CallbackResource; resource_id: string };
  view: View<K['status']>;
  /** Waiting time as the end of a clause; empty when nothing is due. */
  until: (resource: R) => string;
  /** Whether `status` ends a reason; by default it ends overdue and different amounts. */
  isPast?: (attention: K['attention'], status: K['status']) => boolean;
  /** Parts of movements that leave suspense with a transition. */
  take?: (resource: R, next: Next<K>) => Taken[];
  /** Whether a reason replaces the present one, while a movement in suspense has it. */
  outranks?: (reason: K['attention'], current: K['attention']) => boolean;
  /** Replaced by an overdue reason: any other says more. */
  weakReasons?: readonly K['attention'][];
  overdueReasons: readonly K['attention'][];
  getExtraFields?: (resource: R) => Partial<K['change']>;
  remember?: (resource: R, next: Next<K>) => void;
  writeTransition: (
    input: TransitionInput<K['status'], K['attention'], K['change']>,
  ) => Write<TransitionResult<K['status'], K['attention']>>;
  writeAttention: (
    input: RecordAttention<K['attention']>,
  ) => Write<Written<object, K['status'], K['attention']>>;
}

interface StoredState<K extends RecordKind> extends ResourceState<K['status']> {
  attention: K['attention'] | null;
}

interface TransitionOptions<K extends RecordKind> {
  change?: Partial<K['change']>;
  audit?: AuditedAct;
  callback_id?: string;
  /** Makes a repeat known without an event, callback or act. */
  id?: string;
  value_date?: string | undefined;
  /** The bank's, of the movement that a callback reports. */
  reference?: string | undefined;
  /** Minor units that the acquirer keeps of what a callback reports. */
  fee?: number | undefined;
  /** Movement that an act takes. */
  movement?: string | undefined;
  scheduled?: boolean;
}

/** The database has a later version, as after a restore or a reset of the workflow. */
export class StaleState extends Error {
  override readonly name = 'StaleState';
}

/** Cleared by the next transition. */
const UNVERIFIED = 'sender_not_known';

/** Writes of one kind of resource. No other code changes a status, or an attention reason. */
export function createRecord<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
) {
  return {
    show: (resource: R) => show(rules, resource),
    logActivity: (resource: R, line: string) => logActivity(rules, resource, line),
    transition: (resource: R, to: readonly K['status'][], options: TransitionOptions<K> = {}) =>
      transition(rules, resource, to, options),
    /**
     * Books a movement, which counts in the version.
     * @throws StaleState after a sync from the database
     */
    book: <Answer extends object>(resource: R, write: (known: Known) => Write<Written<Answer>>) =>
      book(rules, resource, write),
    /**
     * Books a report that may change the status in the same transaction.
     * @throws StaleState after a sync from the database
     */
    bookState: <Answer extends object>(
      resource: R,
      write: (known: Known) => Write<Written<Answer & StateChange<K>>>,
    ) => bookState(rules, resource, write),
    applyStored: (resource: R, state: StoredState<K>) => applyStored(rules, resource, state),
    applyVerified: (resource: R, item: ReceivedCallback, act: () => Promise<void>) =>
      applyVerified(rules, resource, item, act),
    recordUnapplied: (resource: R, name: CallbackName, callback: AnyCallback, reason: string) =>
      recordUnapplied(rules, resource, { name, callback, reason }),
    noteReference: (resource: R, reference: string) => noteReference(rules, resource, reference),
    /** Stores a result of a name check with the reason that it leaves. */
    noteVerification: (
      resource: R,
      verification: StoredVerification,
      attention: K['attention'] | null,
    ) => noteVerification(rules, resource, verification, attention),
    /** @param isStale the database may have another reason than the known one */
    setAttention: (resource: R, attention: K['attention'] | null, isStale = false) =>
      setAttention(rules, resource, attention, isStale),
    flagMalformed: (resource: R) => flagUnlessMore(rules, resource, 'malformed_callback'),
    flagGivenUp: (resource: R, message: string, refused?: string) =>
      flagGivenUp(rules, resource, message, refused),
    flagOverdue: (resource: R, reason: K['attention']) => flagOverdue(rules, resource, reason),
    recordAct: (resource: R, act: AuditedAct, attention: K['attention'] | null, more?: ActFacts) =>
      recordAct(rules, resource, act, attention, more),
    acknowledge: (resource: R, act: AuditedAct, expected: string | undefined) =>
      acknowledge(rules, resource, act, expected),
    snooze: (resource: R, act: AuditedAct, hours: number) => snooze(rules, resource, act, hours),
  };
}

function show<K extends RecordKind, R extends Recorded<K>>(
  { noun, view, until }: RecordRules<K, R>,
  resource: R,
): void {
  updateDetails(resource, { noun, view, until: until(resource) });
}

function logActivity<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  resource: R,
  line: string,
): void {
  note(resource, line);
  show(rules, resource);
}

/**
 * Changes the status; no other function does.
 * @throws StaleState after a sync from the database
 */
async function transition<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  resource: R,
  to: readonly K['status'][],
  { change: ownChange, audit, scheduled = false, ...options }: TransitionOptions<K>,
): Promise<void> {
  const last = to.at(-1);
  if (last === undefined) return;
  const { callback_id, id, value_date, reference, fee, movement } = options;
  const { account_id, livemode } = resource.facts;
  const at = timestamp(resource);
  const change = { ...rules.getExtraFields?.(resource), ...ownChange };
  const next = { to, at, change, isAct: audit !== undefined, reference, movement };
  const taken = rules.take?.(resource, next) ?? [];
  const known = applyTaken(resource.movements, taken);
  const isReleased = to.includes('failed');
  const left = known.filter((each) => !isReleased || each.direction === 'in');
  const reason = resource.attention;
  // An operator decides about a different amount.
  const staysOpen =
    (reason === 'amount_differs' && audit === undefined) || keepsReason(resource, left);
  const isOver = reason !== null && isPast(rules, reason, last) && !staysOpen;
  const attention: K['attention'] | null = isOver ? findReason(left) : reason;
  const { status, version, transition } = resource;
  const write = scheduled ? writeScheduled : writeLocally;
  const result = await write(
    rules.writeTransition({
      ...getResourceRef(resource),
      account_id,
      livemode,
      from: { status, version, transition },
      to: [...to],
      at,
      attention,
      change,
      ...omitUndefined({ audit, callback_id, id, value_date, reference, fee }),
      ...(taken.length === 0 ? {} : { taken }),
    }),
  );
  if (result.stale !== undefined) throwStale(rules, resource, { ...result, stale: result.stale });
  enterState(resource, { ...result, attention });
  resource.movements = mergeMovements(applyTaken(resource.movements, taken), result.moved);
  if ('bank_reference' in change) resource.storedReference = String(change.bank_reference);
  rules.remember?.(resource, next);
  show(rules, resource);
}

function isPast<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  reason: K['attention'],
  status: K['status'],
): boolean {
  if (reason === UNVERIFIED || reason === 'record_behind') return true;
  if (rules.isPast !== undefined) return rules.isPast(reason, status);
  return reason === 'amount_differs' || rules.overdueReasons.includes(reason);
}

async function book<K extends RecordKind, R extends Recorded<K>, Answer extends object>(
  rules: RecordRules<K, R>,
  resource: R,
  write: (known: Known) => Write<Written<Answer>>,
): Promise<Answer> {
  const { version, transition } = resource;
  const answer = await writeScheduled(write({ version, transition }));
  // The activity is that of this kind of resource.
  if (answer.stale !== undefined) return throwStale(rules, resource, answer as Stale<K>);
  resource.version = answer.version;
  show(rules, resource);
  return answer;
}

/** State after a booking; absent where it changed none. */
interface StateChange<K extends RecordKind> {
  status?: K['status'];
  transition?: number;
  /** Version that a lost task has reached. */
  reached?: number;
}

async function bookState<K extends RecordKind, R extends Recorded<K>, Answer extends object>(
  rules: RecordRules<K, R>,
  resource: R,
  write: (known: Known) => Write<Written<Answer & StateChange<K>>>,
): Promise<Answer> {
  const before = resource.transition;
  const answer = await book(rules, resource, write);
  const { status = resource.status, transition = before, reached = 0 } = answer;
  const version = Math.max(resource.version, reached);
  const { attention } = resource;
  if (transition !== before) enterState(resource, { status, transition, version, attention });
  show(rules, resource);
  return answer;
}

function enterState<K extends RecordKind>(resource: Recorded<K>, state: StoredState<K>): void {
  resource.status = state.status;
  resource.version = state.version;
  resource.transition = state.transition;
  resource.attention = state.attention;
  resource.enteredAt = now(resource);
  resource.snoozedUntil = undefined;
  resource.isOverdueReported = false;
}

function applyStored<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  resource: R,
  state: StoredState<K>,
): void {
  enterState(resource, state);
  logActivity(rules, resource, `synced from the database: the ${rules.noun} is ${state.status}`);
}

type Stale<K extends RecordKind> = StaleResult<K['status'], K['attention']>;

/** @throws StaleState, after a sync from the database */
function throwStale<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  resource: R,
  stored: Stale<K>,
): never {
  resource.movements = stored.moved ?? resource.movements;
  applyStored(rules, resource, { ...stored, attention: stored.stale.attention });
  throw new StaleState(`The ${rules.noun} is ${stored.status} in the database.`);
}

async function recordUnapplied<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  state: R,
  callback: Pick<RecordUnapplied, 'name' | 'callback' | 'reason'>,
): Promise<void> {
  const { connector, request_id } = state.facts;
  const about = { ...getReported(rules, state), connector, request_id, ...callback };
  await writeLocally((activities) => activities.recordUnapplied(about));
}

function getReported<K extends RecordKind, R extends Recorded<K>>(
  { noun, getReported: read }: Pick<RecordRules<K, R>, 'noun' | 'getReported'>,
  resource: R,
) {
  return read?.(resource) ?? { resource: noun, resource_id: resource.id };
}

async function setAttention<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  resource: R,
  attention: K['attention'] | null,
  isStale = false,
): Promise<void> {
  const current = resource.attention;
  const isSame = !isStale && current === attention;
  const isOutranked =
    current !== null && attention !== null && rules.outranks?.(attention, current) === true;
  const isKept = keepsReason(resource, resource.movements) && !isOutranked;
  if (isSame || isKept) return show(rules, resource);
  const answer = await writeLocally(rules.writeAttention(buildAttention(resource, attention)));
  if (answer.stale === undefined) {
    resource.version = answer.version;
    resource.attention = attention;
    if (attention !== null) resource.acknowledged.delete(attention);
  } else if (answer.transition === resource.transition) {
    // A lost task wrote more than this run knows.
    resource.version = answer.version;
    resource.movements = answer.moved ?? resource.movements;
    resource.attention = answer.stale.attention;
    return await setAttention(rules, resource, attention);
  }
  // After a transition of a lost task, the next write decides again.
  show(rules, resource);
}

/** Stores what the bank calls the resource, since no transition may come for long. */
async function noteReference<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  resource: R,
  bank_reference: string,
): Promise<void> {
  if (resource.storedReference !== undefined) return;
  const noted = { ...buildAttention(resource, resource.attention), bank_reference };
  const answer = await writeLocally(rules.writeAttention(noted));
  if (answer.stale === undefined) {
    resource.version = answer.version;
    resource.storedReference = bank_reference;
  }
  show(rules, resource);
}

/** @throws StaleState after a sync from the database */
async function noteVerification<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  resource: R,
  verification: StoredVerification,
  attention: K['attention'] | null,
): Promise<void> {
  const noted = { ...buildAttention(resource, attention), verification };
  const answer = await writeLocally(rules.writeAttention(noted));
  if (answer.stale !== undefined) return throwStale(rules, resource, answer);
  resource.version = answer.version;
  resource.attention = attention;
  if (attention !== null) resource.acknowledged.delete(attention);
  show(rules, resource);
}

/** Keeps a reason that says more. */
async function flagUnlessMore<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  resource: R,
  reason: K['attention'],
): Promise<void> {
  const { weakReasons = [], overdueReasons } = rules;
  const less = [null, UNVERIFIED, reason, ...weakReasons, ...overdueReasons];
  if (less.includes(resource.attention)) await setAttention(rules, resource, reason);
  else show(rules, resource);
}

/** @param refused why the books refused its entry; absent: the state kept changing */
async function flagGivenUp<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  resource: R,
  message: string,
  refused: string | undefined,
): Promise<void> {
  const why = refused ?? 'the state in the database changed each time';
  note(resource, `not applied, since ${why}: ${message}`);
  const reason = refused === undefined ? 'message_given_up' : 'books_refused';
  await flagUnlessMore(rules, resource, reason);
}

async function flagOverdue<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  resource: R,
  reason: K['attention'],
): Promise<void> {
  note(resource, `the ${rules.noun} is overdue: still ${resource.status}`);
  resource.snoozedUntil = undefined;
  resource.isOverdueReported = true;
  const less = [null, UNVERIFIED, ...(rules.weakReasons ?? [])];
  if (less.includes(resource.attention)) await setAttention(rules, resource, reason);
  else show(rules, resource);
}

type ActFacts = Pick<RecordAttention<string>, 'snoozed_until' | 'verification'>;

async function recordAct<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  resource: R,
  act: AuditedAct,
  attention: K['attention'] | null,
  more: ActFacts = {},
): Promise<void> {
  const audit = datedAudit(act);
  const input = { ...buildAttention(resource, attention), audit, ...more };
  const answer = await writeScheduled(rules.writeAttention(input));
  if (answer.stale !== undefined) return throwStale(rules, resource, answer);
  resource.version = answer.version;
  resource.attention = attention;
}

/**
 * Clears the attention reason until it comes again.
 * @param expected reason that the operator saw
 * @returns why it can't be acknowledged
 * @throws StaleState after a sync from the database
 */
async function acknowledge<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  resource: R,
  act: AuditedAct,
  expected: string | undefined,
): Promise<{ code: string; message: string } | undefined> {
  const reason = resource.attention;
  if (reason === null || (expected ?? reason) !== reason) {
    const message = `The attention reason is ${reason ?? 'none'}.`;
    return { code: 'wrong_state', message };
  }
  try {
    await recordAct(rules, resource, act, null);
  } catch (error) {
    const message = findRefusal(error, 'money_in_suspense');
    if (message === undefined) throw error;
    return { code: 'money_in_suspense', message };
  }
  resource.acknowledged.add(reason);
  // A reason that said more may have hidden that it is overdue.
  resource.isOverdueReported = rules.overdueReasons.includes(reason);
  show(rules, resource);
  return undefined;
}

const HOUR_MS = 3_600_000;

async function snooze<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  resource: R,
  act: AuditedAct,
  hours: number,
): Promise<void> {
  const snoozed_until = now(resource) + hours * HOUR_MS;
  const isKept = keepsReason(resource, resource.movements);
  await recordAct(rules, resource, act, isKept ? resource.attention : null, { snoozed_until });
  resource.snoozedUntil = snoozed_until;
  resource.isOverdueReported = false;
  show(rules, resource);
}

/** Makes its time later than the previous one, also within one task. */
function buildAttention<K extends RecordKind>(
  resource: Recorded<K>,
  attention: K['attention'] | null,
): RecordAttention<K['attention']> {
  resource.attentionAt = Math.max(Date.now(), resource.attentionAt + 1);
  const { version, transition, attentionAt: attention_at } = resource;
  const known = { version, transition, attention, audit: null, attention_at };
  return { ...getResourceRef(resource), ...known };
}

function getResourceRef({ id, facts }: Recorded<RecordKind>) {
  return { resource_id: id, request_id: facts.request_id };
}

interface ReceivedCallback {
  name: CallbackName;
  callback: AnyCallback;
  signature: CallbackSignature | undefined;
}

/**
 * Applies each verified callback once; any other is stored and shown.
 * @see docs/connectors.md#prove-who-sends
 */
async function applyVerified<K extends RecordKind, R extends Recorded<K>>(
  rules: RecordRules<K, R>,
  resource: R,
  item: ReceivedCallback,
  act: () => Promise<void>,
): Promise<void> {
  const { verifiedCallbacks } = resource;
  const { name, callback, signature } = item;
  const { callback_id } = callback;
  const first = verifiedCallbacks.get(callback_id);
  if (first === undefined) {
    const { connector, request_id } = resource.facts;
    const report = { connector, ...getReported(rules, resource), name, callback };
    const fault = await findSenderFault(resource, report, signature);
    if (fault !== undefined) {
      const refused = { report, ...omitUndefined({ signature }), code: fault, request_id };
      const at = new Date().toISOString();
      await writeLocally((activities) => activities.recordRefused({ ...refused, at }));
      const why = VERIFICATION_FAULTS[fault];
      note(resource, `callback ${name} (${callback_id}) is ignored: ${why}`);
      // A false callback must not hide another attention reason.
      return resource.attention === null
        ? await setAttention(rules, resource, UNVERIFIED)
        : show(rules, resource);
    }
    verifiedCallbacks.set(callback_id, item);
    // The same item is applied again after a stale state.
  } else if (first !== item) return;
  if (resource.appliedIds.has(callback_id)) {
    return logActivity(rules, resource, `callback ${name} (${callback_id}): applied before`);
  }
  await act();
}

export async function findSenderFault(
  { verification }: Pick<Recorded<RecordKind>, 'verification'>,
  report: SignedCallback,
  signature: CallbackSignature | undefined,
): Promise<VerificationFault | undefined> {
  if (signature === undefined) return verification === 'required' ? 'unsigned' : undefined;
  const { fault } = await writeLocally((activities) =>
    activities.checkSender({ report, signature }),
  );
  return fault ?? undefined;
}
