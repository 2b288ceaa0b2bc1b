-- For wrk: sends the requests of a file, which end with a zero byte each. Every thread has a share
-- of its own, and begins anew at its end, or stops there.
--
--     wrk -s requests.lua URL -- FILE THREADS again|once

local ffi = require("ffi")
ffi.cdef([[
typedef struct { long seconds; long nanoseconds; } moment_t;
int clock_gettime(int clock, moment_t *moment);
]])

local threads = {}

function setup(thread)
    thread:set("number", #threads)
    table.insert(threads, thread)
end

local function now()
    local moment = ffi.new("moment_t")
    ffi.C.clock_gettime(1, moment)
    return tonumber(moment.seconds) + tonumber(moment.nanoseconds) / 1e9
end

function init(arguments)
    local file = assert(io.open(arguments[1], "rb"))
    local all = file:read("*a")
    file:close()
    local count = tonumber(arguments[2])
    once = arguments[3] == "once"
    requests, position, first, last = {}, 0, 0, 0
    local place, index = 1, 0
    while place <= #all do
        local stop = all:find("\0", place, true)
        if index % count == number then
            requests[#requests + 1] = all:sub(place, stop - 1)
        end
        place, index = stop + 1, index + 1
    end
end

function request()
    -- wrk itself asks for the first one long before it starts.
    if position <= 1 and last == 0 then first = now() end
    if position == #requests then
        if once then
            if last == 0 then last = now() end
            wrk.thread:stop()
            return requests[position]
        end
        position = 0
    end
    position = position + 1
    return requests[position]
end

function done(summary, latency)
    local seconds = summary.duration / 1e6
    local begin, finish = math.huge, 0
    for _, thread in ipairs(threads) do
        if thread:get("last") > 0 then
            begin = math.min(begin, thread:get("first"))
            finish = math.max(finish, thread:get("last"))
        end
    end
    if finish > 0 then seconds = finish - begin end
    local errors = summary.errors
    io.write(string.format(
        "RESULT %d %.6f %.1f %.1f %.1f %d\n", summary.requests, seconds,
        latency:percentile(50), latency:percentile(99), latency.max,
        errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
