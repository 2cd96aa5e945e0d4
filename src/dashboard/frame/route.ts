import type { Readable } from 'node:stream';
import type { VNode } from 'preact';
import type { ClientAddress } from '../../base/client-address';
import type { StoredClock } from '../../domain/account/clock';
import type { Act, Role } from '../../domain/account/dashboard-role';
import type { Audit } from '../../service/audit-log';
import type { MerchantDeps, Owner } from '../../service/deps';
import type { UrlRules } from '../../service/endpoints/url';
import type { Redeliveries } from '../../service/events/redeliveries';
import type { Flash } from '../../service/team/sessions';
import type { EndpointLimits } from '../../webhooks/endpoint-limits';
import type { PostWebhook } from '../../webhooks/post';

export type Env = 'sandbox' | 'live';

export interface Viewer {
  user: { id: string; email: string; role: Role; hasSecondFactor: boolean; hasPasskeys: boolean };
  account: {
    id: string;
    name: string;
    crypto: boolean;
    frozen: boolean;
    /** Minor units above which a live refund has a step-up, by currency. */
    refundStepUp: Readonly<Record<string, number>>;
    /** Time of the sandbox; absent before it was first moved. */
    clock: StoredClock | undefined;
  };
  env: Env;
  livemode: boolean;
  session: string;
  /** Token of each form of this session. */
  csrf: string;
}

/** Request of a signed-in user, after the checks of session, role and form token. */
export interface Call {
  viewer: Viewer;
  scope: Owner;
  /** Path after `/dashboard/{environment}`. */
  path: string;
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  form: URLSearchParams;
  /** File of the route's upload; null where none was chosen. */
  file: Uint8Array | null;
  requestId: string;
  /** Time of the account: the sandbox has a clock. */
  now: Date;
  may: (act: Act) => boolean;
  /** Writes the audit log in this user's name. */
  audit: Audit;
  /** Builds the address of a page in this environment: `href('/payments')`. */
  href: (path: string) => string;
}

export interface PageDeps extends DashboardDeps {
  audit: Audit;
}

export type Answer =
  | VNode
  | { page: VNode; title?: string; status?: number }
  | { go: string; flash?: Flash }
  | { download: Readable; filename: string; type: string }
  | 'not_found';

export type Proof = 'password' | 'step_up';

/** Confirmation before an act that cannot be undone or shows a secret. */
export interface Confirmation {
  question: string | ((form: URLSearchParams) => string);
  button: string;
  /**
   * Proof that the user gives again: the password, or with `step_up` also a code or a passkey, where
   * the second factor is on.
   * @see docs/dashboard.md#step-up
   */
  proof?: Proof | ((call: Call, deps: DashboardDeps) => Promise<Proof | undefined>);
  /** Whether the sandbox asks nothing. */
  liveOnly?: true;
}

export interface Upload {
  field: string;
  /** Bytes of the whole form: a larger one is not read. */
  bytesMax: number;
}

export interface Route {
  method: 'get' | 'post';
  /** Path after `/dashboard/{environment}`, with parameters as `:id`. */
  path: string;
  act: Act;
  title: string;
  crypto?: true;
  /** Counts towards the limits of visits; by default as much as others of its method. */
  cost?: number;
  /**
   * Allowed for a frozen account: the POST makes the account safer, or sends existing events again.
   * @see docs/operators.md#freeze-an-account
   */
  whileFrozen?: true;
  /** File that the form may have, next to its fields; it is lost on a confirmation page. */
  upload?: Upload;
  confirmation?: Confirmation;
  handle: (call: Call, deps: PageDeps) => Promise<Answer>;
}

/** Builds the route of a page that every role may see. */
export function viewRoute(path: string, title: string, handle: Route['handle']): Route {
  return { method: 'get', path, act: 'view', title, handle };
}

/** Names the signed-in user to the service. */
export function getSelf({ viewer: { user }, scope }: Pick<Call, 'viewer' | 'scope'>) {
  return { _id: user.id, account_id: scope.account_id, email: user.email };
}

export interface DashboardDeps extends MerchantDeps {
  redeliveries: Redeliveries;
  publicUrl: string;
  webhookUrls: UrlRules;
  /** Whether acts on live need a user with a second factor. */
  isSecondFactorRequired: boolean;
  /** Costs of pages in ten seconds; by default `VISIT_COSTS_MAX`. */
  visitCostsMax?: { session: number; account: number };
  /** Limits of test events. */
  limits: EndpointLimits;
  post: PostWebhook;
  /** Address by which sign-in attempts are counted. */
  clientAddress: ClientAddress;
}
