// A server of tools on the SDK for JavaScript, which lists them page by page and answers in JSON.
// Its port is in PORT; each call appends a line to the file that PAGING_DONE names.
import { randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const PER_PAGE = 3;
const TOOLS = Array.from({ length: 8 }, (_, number) => ({
  name: `t${number}`,
  inputSchema: { type: "object" },
  annotations: { destructiveHint: false },
}));
const known = new Map();

async function begun() {
  const server = new Server({ name: "paging", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    const from = Number(params?.cursor ?? 0);
    const to = from + PER_PAGE;
    const more = to < TOOLS.length ? { nextCursor: String(to) } : {};
    return { tools: TOOLS.slice(from, to), ...more };
  });
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    appendFileSync(process.env.PAGING_DONE, `${params.name}\n`);
    return { content: [{ type: "text", text: "counted" }], structuredContent: { by: params.name } };
  });
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: (id) => known.set(id, transport),
  });
  await server.connect(transport);
  return transport;
}

createServer(async (request, response) => {
  const id = request.headers["mcp-session-id"];
  const transport = id === undefined ? await begun() : known.get(id);
  if (transport) return transport.handleRequest(request, response);
  const error = { code: -32001, message: "Session not found" };
  response.writeHead(404, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", error, id: null }));
}).listen(process.env.PORT);
