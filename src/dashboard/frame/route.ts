import type { Readable } from 'node:stream';
import type { VNode } from 'preact';
import type { ClientAddress } from '../../base/networks';
import type { StoredClock } from '../../domain/merchants/clock';
import type { Act, Role } from '../../domain/merchants/dashboard-role';
import type { MerchantDeps, Owner } from '../../service/access';
import type { UrlRules } from '../../service/events/endpoints/manage';
import type { Redeliveries } from '../../service/events/redeliveries';
import type { Audit } from '../../service/operators/audit/log';
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
    /** Minor units by currency. */
    refundStepUp: Readonly<Record<string, number>>;
    clock: StoredClock | undefined;
  };
  env: Env;
  livemode: boolean;
  session: string;
  /** Hash of the device cookie, if the user has signed in with this browser. */
  knownDevice: string | null;
  csrf: string;
}

/** Request after the checks of session, role and form token. */
export interface Call {
  viewer: Viewer;
  scope: Owner;
  /** Path after `/dashboard/{environment}`. */
  path: string;
  /** The path's `:id`, else empty. */
  id: string;
  query: URLSearchParams;
  form: URLSearchParams;
  file: Uint8Array | null;
  requestId: string;
  /** Time of the account: the sandbox has a clock. */
  now: Date;
  may: (act: Act) => boolean;
  audit: Audit;
  /** Address in this environment: `href('/payments')`. */
  href: (path: string) => string;
}

export interface PageDeps extends DashboardDeps {
  audit: Audit;
}

export type Answer =
  | VNode
  | { page: VNode; title?: string; status?: number }
  /** Page of this environment, on which the text is shown once. */
  | { go: string; good?: string; bad?: string }
  | { download: Readable; filename: string; type: string }
  | 'not_found'
  | 'signed_out';

export type Proof = 'password' | 'step_up';

export interface Confirmation {
  question: string | ((form: URLSearchParams) => string);
  /** As on the page that has the form. */
  button: string | ((form: URLSearchParams) => string);
  /** Shown instead of the question where the act would be refused anyway. */
  refuse?: (call: Call, deps: PageDeps) => Promise<Answer | undefined>;
  /** @see docs/dashboard.md#step-up */
  proof?: Proof | ((call: Call, deps: DashboardDeps) => Promise<Proof | undefined>);
  liveOnly?: true;
}

export interface Upload {
  field: string;
  label: string;
  bytesMax: number;
}

export interface Route {
  method: 'get' | 'post';
  /** Path after `/dashboard/{environment}`, with parameters as `:id`. */
  path: string;
  /** Role that it needs, by domain/merchants/dashboard-role.ts; checked in signed-in.tsx. */
  act: Act;
  title: string;
  crypto?: true;
  cost?: number;
  /**
   * Allowed for a frozen account: the POST makes it safer, or sends existing events again.
   * @see docs/operators.md#freeze-an-account
   */
  whileFrozen?: true;
  upload?: Upload;
  /** Limit of a form with long texts. */
  bytesMax?: number;
  confirmation?: Confirmation;
  handle: (call: Call, deps: PageDeps) => Promise<Answer>;
}

export function viewRoute(path: string, title: string, handle: Route['handle']): Route {
  return { method: 'get', path, act: 'view', title, handle };
}

export function postRoute(
  path: string,
  act: Act,
  route: Omit<Route, 'method' | 'path' | 'act'>,
): Route {
  return { method: 'post', path, act, ...route };
}

export function getSelf({ viewer: { user }, scope }: Pick<Call, 'viewer' | 'scope'>) {
  return { _id: user.id, account_id: scope.account_id, email: user.email };
}

export interface DashboardDeps extends MerchantDeps {
  redeliveries: Redeliveries;
  publicUrl: string;
  webhookUrls: UrlRules;
  isSecondFactorRequired: boolean;
  visitCostsMax?: { session: number; account: number };
  limits: EndpointLimits;
  post: PostWebhook;
  clientAddress: ClientAddress;
}
