import { z } from 'zod';
import { exitAfter } from '../../src/base/process';
import { parseEnvironment } from '../../src/config';
import { serveConnector } from '../kit/connector';
import { defineHttp, httpSettings } from './definition';

async function main(): Promise<void> {
  await serveConnector(defineHttp(parseEnvironment(z.object(httpSettings), process.env)));
}

exitAfter(main());
