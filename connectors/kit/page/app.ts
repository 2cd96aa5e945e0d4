import type { IncomingMessage, RequestListener } from 'node:http';
import Router from '@koa/router';
import Koa from 'koa';
import { addAsset } from '../../../src/pages/assets';
import { pageHeaders } from '../../../src/pages/security';
import { renderSteps, STEPS_CSS } from './page';
import type { StepLog } from './steps';

const PAGE_PATH = '/connectors';
const STYLES_PATH = '/connectors/page.css';

const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];
const LOOPBACK = /^(?:::ffff:)?127\.|^::1$/;
const LOCAL_HOST = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/;

/** @see docs/connectors.md#see-what-it-does */
export function createPage(connector: string, steps: Pick<StepLog, 'list'>): RequestListener {
  const router = new Router();
  const stylesheet = addAsset(router, STYLES_PATH, 'text/css', STEPS_CSS);
  router.get(PAGE_PATH, (ctx) => {
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = renderSteps({ connector, steps: steps.list(), stylesheet });
  });
  const app = new Koa();
  app.use(pageHeaders('http://localhost'));
  app.use(router.routes());
  const show = app.callback();
  return (request, response) => void show(request, response);
}

/** Accepts requests from this machine only: the bank reaches the port, too. */
export function isForPage({ url, method, headers, socket }: IncomingMessage): boolean {
  const path = url?.split('?', 1)[0];
  const isPage = method === 'GET' && (path === PAGE_PATH || path === STYLES_PATH);
  const isForwarded = FORWARDED.some((name) => headers[name] !== undefined);
  const isLocal = LOCAL_HOST.test(headers.host ?? '') && LOOPBACK.test(socket.remoteAddress ?? '');
  return isPage && isLocal && !isForwarded;
}
