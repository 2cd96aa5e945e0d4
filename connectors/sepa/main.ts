import { exitAfter } from '../../src/base/process';
import { serveConnector } from '../kit/connector';
import { startSepa } from './connector';
import { defineSepa } from './definition';

const definition = defineSepa(() => {
  throw new Error('The connector is not connected yet.');
}, process.env['SEPA_INSTANT'] === 'yes');

exitAfter(serveConnector(definition, startSepa));
