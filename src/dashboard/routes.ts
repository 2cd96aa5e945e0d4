import { GETTING_STARTED_ROUTES } from './getting-started';
import type { Route } from './route';

/** Pages and acts of signed-in people, in the order of the navigation. */
export const ROUTES: readonly Route[] = [...GETTING_STARTED_ROUTES];
