-- SPDX-License-Identifier: Apache-2.0
-- Wireshark and tshark: the QoS extension of OpenFlow 1.3 (docs/reference/qos-extension.md) and bundles
-- (docs/reference/extensions.md) in the tree, the packet list and display filters.
--
--   wireshark -X lua_script:packaging/wireshark/ofqos.lua           or put it into Wireshark's plugin folder
--   tshark -X lua_script:packaging/wireshark/ofqos.lua -Y 'ofqos.port_no == 2' -V ...
--
-- Takes the ports of OpenFlow over; what isn't the extension's goes on to Wireshark's own
-- dissector.
-- For other ports: "Decode As..." ofqos, or  -d tcp.port==6654,ofqos

local ofqos = Proto("ofqos", "OpenFlow QoS extension (ofqos)")
local openflow = Dissector.get("openflow")

local VERSION = 4
local HEADER = 8
local T_ERROR, T_EXPERIMENTER, T_MP_REQUEST, T_MP_REPLY, T_QOS = 1, 4, 18, 19, 30
local QOSF, ONF = 0x514f5346, 0x4f4e4600
local ET_SCHED_FAILED, ET_EXPERIMENTER, MP_EXPERIMENTER = 14, 0xffff, 0xffff
local EXP_QOS, EXP_RELAY, MP_DUMP, MP_STATUS = 1, 5, 1, 5
local EXP_MONITOR, EXP_QOS_CHANGED, EXP_ROLE_CHANGED, EXP_QOS_PROMISE = 6, 7, 8, 15
local EXP_CAPTURE, EXP_CAPTURED, MP_DROPS = 10, 11, 8
local BUNDLE_CONTROL, BUNDLE_ADD = 2300, 2301
local CLASS, DEL = 1, 1
local ENTRY = 72
local ALL_CLASSES = 0xffffffff

-- ------------------------------------------------------------------------------------- names

local function from_zero(...)
    local names = {}
    for i, name in ipairs({...}) do
        names[i - 1] = name
    end
    return names
end

local scheds = from_zero("NONE", "HTB", "PFIFO", "BFIFO", "SFQ", "RED", "TBF", "PRIO", "CODEL",
    "FQ_CODEL", "FQ", "PIE", "CAKE", "HFSC", "DRR", "NETEM", "ETS", "FQ_PIE", "DUALPI2", "CHOKE",
    "GRED", "MQ", "MQPRIO", "ETF", "TAPRIO", "CBS", "BPF")
local objects = from_zero("QDISC", "CLASS")
local actions = from_zero("ADD", "DEL", "CHANGE", "REPLACE")
local codes = from_zero("OFPSFC_BAD_SCHED", "OFPSFC_BAD_OBJECT", "OFPSFC_BAD_ACTION",
    "OFPSFC_BAD_PORT", "OFPSFC_BAD_CLASS", "OFPSFC_BAD_PARAM", "OFPSFC_BAD_PROPERTY",
    "OFPSFC_EXISTS", "OFPSFC_NOT_FOUND", "OFPSFC_BUSY", "OFPSFC_UNSUPPORTED", "OFPSFC_PERM",
    "OFPSFC_KERNEL")
local bundle_codes = from_zero("UNKNOWN", "EPERM", "BAD_ID", "BUNDLE_EXIST", "BUNDLE_CLOSED",
    "OUT_OF_BUNDLES", "BAD_TYPE", "BAD_FLAGS", "MSG_BAD_LEN", "MSG_BAD_XID", "MSG_UNSUP",
    "MSG_CONFLICT", "MSG_TOO_MANY", "MSG_FAILED", "TIMEOUT", "BUNDLE_IN_PROGRESS")
local bundle_types = from_zero("OPEN_REQUEST", "OPEN_REPLY", "CLOSE_REQUEST", "CLOSE_REPLY",
    "COMMIT_REQUEST", "COMMIT_REPLY", "DISCARD_REQUEST", "DISCARD_REPLY")
local types = {[T_ERROR] = "OFPT_ERROR", [T_EXPERIMENTER] = "OFPT_EXPERIMENTER",
    [T_MP_REQUEST] = "OFPT_MULTIPART_REQUEST", [T_MP_REPLY] = "OFPT_MULTIPART_REPLY",
    [T_QOS] = "OFPT_QOS_QUEUEING_DISCIPLINE"}
local experimenters = {[QOSF] = "QOSF", [ONF] = "ONF"}
local exp_types = {[1] = "QOS", [2] = "PORT_ADD", [3] = "PORT_DEL", [4] = "SET_DESC",
    [EXP_RELAY] = "RELAY", [EXP_MONITOR] = "MONITOR", [EXP_QOS_CHANGED] = "QOS_CHANGED",
    [EXP_ROLE_CHANGED] = "ROLE_CHANGED", [EXP_CAPTURE] = "CAPTURE", [EXP_CAPTURED] = "CAPTURED",
    [EXP_QOS_PROMISE] = "QOS_PROMISE"}
local causes = {"REQUEST", "FOREIGN", "REPAIRED", "GONE", "BACK"}
local promise_states = {"BROKEN", "KEPT"}
local capture_points = {[0] = "END", [1] = "IN", [2] = "OUT", [4] = "MISS", [8] = "DROP"}
local roles = from_zero("NOCHANGE", "EQUAL", "MASTER", "SLAVE")
local mp_types = {[MP_DUMP] = "QOS_DUMP", [2] = "COUNTERS", [3] = "KERNEL", [4] = "QOS_PORTS",
    [MP_STATUS] = "STATUS", [9] = "SERVICE", [13] = "TINS", [14] = "QOS_LATENCY", [15] = "ROUND_TRIPS", [16] = "HISTOGRAMS", [17] = "RETRANSMISSIONS",
    [MP_DROPS] = "DROPS",
    [12] = "STATS_CACHE"}
local bundle_exp_types = {[BUNDLE_CONTROL] = "BUNDLE_CONTROL", [BUNDLE_ADD] = "BUNDLE_ADD_MESSAGE"}
local ports = {[0xfffffffe] = "LOCAL", [0xffffffff] = "ANY"}
local no_yes = from_zero("no", "yes")

-- -------------------------------------------------------------------------------------- rows

-- Parameters: name -> bytes of the value, what it is.  Also the display filter ofqos.NAME.
local params = {
    parent = {4}, burst = {4, "bytes"}, cburst = {4, "bytes"}, quantum = {4, "bytes"},
    rate = {8, "bit/s"}, peak_rate = {8, "bit/s"}, limit = {4}, latency_us = {4, "us"},
    jitter_us = {4, "us"}, loss_ppm = {4, "ppm"}, target_us = {4, "us"},
    interval_us = {4, "us"}, flows = {4}, ecn = {1, nil, no_yes}, red_max = {4, "bytes"},
    red_probability_ppm = {4, "ppm"}, red_avpkt = {4, "bytes"}, red_burst = {4, "packets"},
    red_bandwidth = {8, "bit/s"}, red_adaptive = {1, nil, no_yes}, sfq_depth = {4, "packets"},
    sfq_divisor = {4}, bands = {1}, rate_share_ppm = {4, "ppm"}, ceil_share_ppm = {4, "ppm"},
    diffserv = {1, nil, from_zero("besteffort", "diffserv3", "diffserv4", "diffserv8")},
    direction = {1, nil, from_zero("out", "in")}, with_children = {1, nil, no_yes},
    overhead = {4, "bytes"}, mpu = {4, "bytes"},
    linklayer = {1, nil, from_zero("ethernet", "atm", "ptm")},
    flow_mode = {1, nil, from_zero("flowblind", "srchost", "dsthost", "hosts", "flows",
        "dual-srchost", "dual-dsthost", "triple-isolate")},
    nat = {1, nil, no_yes}, wash = {1, nil, no_yes},
    ack_filter = {1, nil, from_zero("no", "filter", "aggressive")}, ingress = {1, nil, no_yes},
    split_gso = {1, nil, no_yes}, memory_limit = {4, "bytes"}, fwmark = {4},
    autorate_ingress = {1, nil, no_yes},
    max_rate = {8, "bit/s"}, ce_threshold_us = {4, "us"}, drop_batch = {4, "packets"},
    offload = {1, nil, no_yes}, promise = {4, "ms"}, delay_us = {4, "us"}, oversubscribe = {1, nil, no_yes},
    -- fixed only
    ceil = {8, "bit/s"}, prio = {4}, perturb = {4, "s"}, threshold = {4, "bytes"},
}
local PRIOMAP, SERVICE_CURVE, PRECEDENCE = "priomap", "service_curve", "drop_precedence"
local NAME, NAME_BYTES = "name", 31

-- Property types in their order, from 1; then those after a gap.
local props = {"parent", "burst", "cburst", "quantum", "rate", "peak_rate", "limit", "latency_us",
    "jitter_us", "loss_ppm", "target_us", "interval_us", "flows", "ecn", "red_max",
    "red_probability_ppm", "red_avpkt", "red_burst", "red_bandwidth", "red_adaptive",
    "sfq_depth", "sfq_divisor", "bands", PRIOMAP, SERVICE_CURVE, "rate_share_ppm",
    "ceil_share_ppm", "diffserv", "direction", "with_children", "overhead", "mpu", "linklayer",
    "flow_mode", "nat", "wash", "ack_filter", "ingress", "split_gso", "memory_limit", "fwmark",
    "autorate_ingress", "max_rate", "ce_threshold_us", "drop_batch",
    "offload", [47] = PRECEDENCE, [48] = NAME, [49] = "promise", [50] = "delay_us", [51] = "oversubscribe"}

-- Fixed parameters after class_id; a number is that many bytes of padding.
local fixed = {
    ["HTB CLASS"] = {"rate", "ceil", "prio", 4},
    ["PFIFO QDISC"] = {"limit"}, ["BFIFO QDISC"] = {"limit"},
    ["SFQ QDISC"] = {"perturb", "quantum"}, ["RED QDISC"] = {"threshold", "limit"},
}

-- Counters of a QOS_DUMP entry, after parent_id.
local counters = {{"bytes", 8}, {"packets", 8}, {"drops", 8}, {"overlimits", 8}, {"requeues", 8},
    {"marked", 8}, {"backlog_bytes", 4}, {"backlog_packets", 4}}

-- ------------------------------------------------------------------------------------ fields

local f = {}

local function number(name, bytes, text, words, display)
    local make = ({ProtoField.uint8, ProtoField.uint16, [4] = ProtoField.uint32,
        [8] = ProtoField.uint64})[bytes]
    f[name] = make("ofqos." .. name, text or name, display, words)
end
local DEC, HEX = base.DEC, base.HEX

number("version", 1, "Version", nil, DEC)
number("type", 1, "Type", types, DEC)
number("length", 2, "Length", nil, DEC)
number("xid", 4, "Transaction id", nil, DEC)
number("experimenter", 4, "Experimenter", experimenters, HEX)
number("exp_type", 4, "Experimenter type", exp_types, DEC)
number("mp_exp_type", 4, "Experimenter type", mp_types, DEC)
number("mp_flags", 2, "Flags", nil, HEX)
number("bundle_exp_type", 4, "Experimenter type", bundle_exp_types, DEC)
number("bundle_id", 4, "Bundle id", nil, DEC)
number("bundle_type", 2, "Bundle control type", bundle_types, DEC)
number("bundle_flags", 2, "Flags (1 atomic, 2 ordered)", nil, HEX)
number("relay_connected", 1, "Controllers connected", nil, DEC)
number("relay_targets", 1, "Controllers", nil, DEC)
number("relay_fail", 1, "Without one", {[0] = "closed", [1] = "open", [255] = "as the switch"}, DEC)
f.status = ProtoField.string("ofqos.status", "Status")
number("monitor", 4, "What (1 QoS, 2 roles, 4 promises, 8 drops, 16 delays)", nil, HEX)
number("capture_what", 4, "What (1 in, 2 out, 4 miss, 8 drop)", nil, HEX)
number("capture_reason", 4, "Reason of drops", nil, DEC)
number("capture_snaplen", 4, "Bytes of each packet", nil, DEC)
number("capture_rate", 4, "Packets a second", nil, DEC)
number("capture_limit", 8, "Packets", nil, DEC)
number("capture_point", 1, "Where", capture_points, DEC)
number("capture_table", 1, "Table", nil, DEC)
number("capture_drop", 2, "Reason", nil, DEC)
number("capture_in_port", 4, "From port", nil, DEC)
number("capture_time", 8, "Time (ns since 1970)", nil, DEC)
number("capture_cookie", 8, "Cookie", nil, HEX)
number("capture_lost", 8, "Copies lost", nil, DEC)
number("capture_total_len", 4, "Length of the packet", nil, DEC)
number("capture_segment", 2, "Length of its segments", nil, DEC)
f.capture_data = ProtoField.bytes("ofqos.capture_data", "Packet")
number("cause", 1, "Cause", causes, DEC)
number("objects", 4, "Qdiscs and classes", nil, DEC)
number("serial", 4, "Serial number", nil, DEC)
number("promise_direction", 1, "Direction", from_zero("out", "in"), DEC)
number("promise_state", 1, "State", promise_states, DEC)
number("promise_rate", 8, "Rate (bit/s)", nil, DEC)
number("promise_sent", 8, "Sent (bit/s)", nil, DEC)
number("promise_kind", 1, "Kind", from_zero("RATE", "DROPS", "DELAY"), DEC)
number("promise_lasted", 8, "Lasted (us)", nil, DEC)
number("promise_dropped", 8, "Packets dropped", nil, DEC)
number("role", 4, "Role", roles, DEC)
number("generation_id", 8, "Generation id", nil, HEX)
number("sched_type", 1, "Scheduler", scheds, DEC)
number("object_type", 1, "Object", objects, DEC)
number("action_type", 1, "Action", actions, DEC)
number("port_no", 4, "Port", nil, DEC)
number("class_id", 4, "Class", nil, DEC)
number("parent_id", 4, "Parent class", nil, DEC)
number("entry_length", 2, "Entry length", nil, DEC)
number("prop_type", 2, "Property type", nil, DEC)
number("prop_length", 2, "Property length", nil, DEC)
number("curve", 1, "Service curve",
    {[1] = "real-time", [2] = "link-sharing", [3] = "upper limit"}, DEC)
number("curve_m1", 8, "m1 (bit/s)", nil, DEC)
number("curve_d", 8, "d (us)", nil, DEC)
number("curve_m2", 8, "m2 (bit/s)", nil, DEC)
number("dp", 1, "Drop precedence", nil, DEC)
number("dp_prio", 1, "prio", nil, DEC)
number("dp_min", 4, "min (bytes)", nil, DEC)
number("dp_max", 4, "max (bytes)", nil, DEC)
number("dp_limit", 4, "limit (bytes)", nil, DEC)
number("dp_probability_ppm", 4, "probability (ppm)", nil, DEC)
number("error_type", 2, "Error type",
    {[ET_SCHED_FAILED] = "OFPET_SCHED_FAILED", [ET_EXPERIMENTER] = "OFPET_EXPERIMENTER"}, DEC)
number("error_code", 2, "Error code", codes, DEC)
number("bundle_error_type", 2, "Experimenter type of the error", nil, DEC)
number("errno", 4, "Kernel's errno", nil, DEC)
for name, row in pairs(params) do
    number(name, row[1], row[2] and name .. " (" .. row[2] .. ")" or name, row[3], DEC)
end
f.overhead = ProtoField.int32("ofqos.overhead", "overhead (bytes)")
for _, row in ipairs(counters) do
    number("count_" .. row[1], row[2], row[1], nil, DEC)
end
f.peer = ProtoField.stringz("ofqos.peer", "Peer")
f.name = ProtoField.string("ofqos.name", "name")
f.priomap = ProtoField.bytes("ofqos.priomap", "priomap", base.COLON)
f.error_text = ProtoField.string("ofqos.error_text", "Sentence")
f.error_request = ProtoField.bytes("ofqos.error_request", "The request, first 64 bytes")
f.data = ProtoField.bytes("ofqos.data", "Data")

local all = {}
for _, field in pairs(f) do
    all[#all + 1] = field
end
ofqos.fields = all

local malformed = ProtoExpert.new("ofqos.malformed", "Malformed", expert.group.MALFORMED,
    expert.severity.ERROR)
local refused = ProtoExpert.new("ofqos.refused", "Refused", expert.group.RESPONSE_CODE,
    expert.severity.WARN)
ofqos.experts = {malformed, refused}

-- --------------------------------------------------------------------------------- the request

local function wrong(tree, text)
    tree:add_proto_expert_info(malformed, text)
end

-- A parameter's value, or the bytes where its length is not the one it has.
local function add_value(tree, name, range)
    local row = params[name]
    if row and range:len() == row[1] then
        tree:add(f[name], range)
    elseif name == NAME and range:len() <= NAME_BYTES then
        tree:add_packet_field(f.name, range, ENC_UTF_8)
    elseif name == PRIOMAP and range:len() == 16 then
        tree:add(f.priomap, range)
    elseif name == SERVICE_CURVE and range:len() == 32 then
        tree:add(f.curve, range(0, 1))
        tree:add(f.curve_m1, range(8, 8))
        tree:add(f.curve_d, range(16, 8))
        tree:add(f.curve_m2, range(24, 8))
    elseif name == PRECEDENCE and range:len() == 20 then
        tree:add(f.dp, range(0, 1))
        tree:add(f.dp_prio, range(1, 1))
        for i, part in ipairs({"min", "max", "limit", "probability_ppm"}) do
            tree:add(f["dp_" .. part], range(4 * i, 4))
        end
    else
        tree:add(f.data, range)
        wrong(tree, "a property that is unknown, or of another length than its own")
    end
end

local function add_property(tree, range)
    local kind, length = range(0, 2):uint(), range(2, 2):uint()
    local name = props[kind]
    local at = tree:add(range, "Property: " .. (name and name:upper() or kind))
    at:add(f.prop_type, range(0, 2))
    at:add(f.prop_length, range(2, 2))
    if length > 4 then
        add_value(at, name, range(4, length - 4))
    end
end

-- Fixed parameters, then properties.
local function add_params(tree, tvb, at, sched, object, action, align)
    local rows = fixed[(scheds[sched] or "?") .. " " .. (objects[object] or "?")]
    local start = at
    for _, name in ipairs(action ~= DEL and rows or {}) do
        local size = type(name) == "number" and name or params[name][1]
        if tvb:len() - at < size then
            return wrong(tree, "too short for the fixed parameters")
        end
        if type(name) == "string" then
            tree:add(f[name], tvb(at, size))
        end
        at = at + size
    end
    if align then
        at = at + (start - at) % 8
    end
    while at < tvb:len() do
        local length = tvb:len() - at >= 4 and tvb(at + 2, 2):uint() or 0
        local padded = length + -length % 8
        if length < 4 or padded > tvb:len() - at then
            return wrong(tree, "a property's length does not fit")
        end
        add_property(tree, tvb(at, padded))
        at = at + padded
    end
end

local function port_name(no)
    return ports[no] or tostring(no)
end

local function add_port(tree, range)
    local name = ports[range:uint()]
    local item = tree:add(f.port_no, range)
    if name then
        item:append_text(" (" .. name .. ")")
    end
end

local function add_class(tree, range)
    local item = tree:add(f.class_id, range)
    if range:uint() == ALL_CLASSES then
        item:append_text(" (all)")
    end
end

-- "ADD HTB CLASS 10 on port 2"
local function summary(action, sched, object, class, port)
    return string.format("%s %s %s %u on port %s", actions[action] or action,
        scheds[sched] or sched, objects[object] or object, class, port_name(port))
end

-- sched_type to class_id; -> scheduler, object, action, and all of it as text
local function add_head(tree, tvb)
    tree:add(f.sched_type, tvb(0, 1))
    tree:add(f.object_type, tvb(4, 1))
    tree:add(f.action_type, tvb(5, 1))
    add_port(tree, tvb(8, 4))
    add_class(tree, tvb(12, 4))
    local sched, object, action = tvb(0, 1):uint(), tvb(4, 1):uint(), tvb(5, 1):uint()
    return sched, object, action,
        summary(action, sched, object, tvb(12, 4):uint(), tvb(8, 4):uint())
end

local function add_request(tree, tvb)
    if not tvb or tvb:len() < 16 then
        wrong(tree, "too short for a QoS request")
        return "QoS, malformed"
    end
    local sched, object, action, text = add_head(tree, tvb)
    add_params(tree, tvb, 16, sched, object, action, false)
    return "QoS " .. text
end

-- ------------------------------------------------------------------------------- what changes

local function add_monitor(tree, tvb)
    tree:add(f.monitor, tvb(0, 4))
    return string.format("MONITOR 0x%x", tvb(0, 4):uint())
end

local function add_qos_changed(tree, tvb)
    local cause, port = tvb(0, 1):uint(), tvb(4, 4):uint()
    local text = string.format("QOS_CHANGED (%s) ", causes[cause] or cause)
    tree:add(f.cause, tvb(0, 1))
    tree:add(f.objects, tvb(8, 4))
    tree:add(f.serial, tvb(12, 4))
    if tvb:len() > 16 then
        return text .. add_request(tree, tvb(16):tvb())
    end
    add_port(tree, tvb(4, 4))
    return text .. "port " .. port_name(port)
end

local function add_role_changed(tree, tvb)
    local role = tvb(0, 4):uint()
    tree:add(f.role, tvb(0, 4))
    tree:add(f.generation_id, tvb(8, 8))
    tree:add(f.peer, tvb(16, 128))
    return string.format("ROLE_CHANGED %s is %s", tvb(16, 128):stringz(), roles[role] or role)
end

local function add_qos_promise(tree, tvb)
    local state = tvb(9, 1):uint()
    for _, row in ipairs({{"port_no", 0, 4}, {"class_id", 4, 4}, {"promise_direction", 8, 1},
        {"promise_state", 9, 1}, {"promise_kind", 10, 1}, {"promise", 12, 4}, {"promise_rate", 16, 8},
        {"promise_sent", 24, 8}, {"promise_lasted", 32, 8}, {"promise_dropped", 40, 8}}) do
        tree:add(f[row[1]], tvb(row[2], row[3]))
    end
    return string.format("QOS_PROMISE (%s%s) class %u of port %s", promise_states[state] or state,
        tvb(10, 1):uint() == 1 and ": drops" or "", tvb(4, 4):uint(), port_name(tvb(0, 4):uint()))
end

local function add_capture(tree, tvb)
    for i, name in ipairs({"capture_what", "port_no", "class_id", "capture_reason",
        "capture_snaplen", "capture_rate"}) do
        tree:add(f[name], tvb(4 * i - 4, 4))
    end
    tree:add(f.capture_limit, tvb(24, 8))
    return string.format("CAPTURE 0x%x on port %s", tvb(0, 4):uint(), port_name(tvb(4, 4):uint()))
end

local function add_captured(tree, tvb)
    local point = tvb(0, 1):uint()
    for _, row in ipairs({{"capture_point", 0, 1}, {"capture_table", 1, 1}, {"capture_drop", 2, 2},
        {"capture_in_port", 4, 4}, {"capture_time", 8, 8}, {"port_no", 16, 4}, {"class_id", 20, 4},
        {"capture_cookie", 24, 8}, {"capture_lost", 32, 8}, {"capture_total_len", 40, 4},
        {"capture_segment", 44, 2}}) do
        tree:add(f[row[1]], tvb(row[2], row[3]))
    end
    local match = math.floor((tvb(50, 2):uint() + 7) / 8) * 8
    if tvb:len() > 48 + match then
        tree:add(f.capture_data, tvb(48 + match))
    end
    return string.format("CAPTURED %s, %u bytes", capture_points[point] or point,
        tvb(40, 4):uint())
end

-- Messages by exp_type: the least length of what follows, and the function that adds it.
local contents = {
    [EXP_QOS] = {0, add_request},
    [EXP_MONITOR] = {8, add_monitor},
    [EXP_QOS_CHANGED] = {16, add_qos_changed},
    [EXP_ROLE_CHANGED] = {144, add_role_changed},
    [EXP_QOS_PROMISE] = {48, add_qos_promise},
    [EXP_CAPTURE] = {32, add_capture},
    [EXP_CAPTURED] = {56, add_captured},
}

-- ------------------------------------------------------------------------------ what comes back

local function add_entry(tree, tvb)
    local object, sched = tvb(2, 1):uint(), tvb(3, 1):uint()
    local at = tree:add(tvb(), string.format("Entry: port %s, class %u, %s %s",
        port_name(tvb(4, 4):uint()), tvb(8, 4):uint(), scheds[sched] or sched,
        objects[object] or object))
    at:add(f.entry_length, tvb(0, 2))
    at:add(f.object_type, tvb(2, 1))
    at:add(f.sched_type, tvb(3, 1))
    add_port(at, tvb(4, 4))
    add_class(at, tvb(8, 4))
    at:add(f.parent_id, tvb(12, 4))
    local offset = 16
    for _, row in ipairs(counters) do
        at:add(f["count_" .. row[1]], tvb(offset, row[2]))
        offset = offset + row[2]
    end
    add_params(at, tvb, ENTRY, sched, object, 0, true)
end

local function add_dump(tree, tvb)
    local n = 0
    while tvb and tvb:len() > 0 do
        local length = tvb:len() >= ENTRY and tvb(0, 2):uint() or 0
        if length < ENTRY or length > tvb:len() then
            wrong(tree, "an entry's length does not fit")
            break
        end
        add_entry(tree, tvb(0, length):tvb())
        tvb = length < tvb:len() and tvb(length):tvb() or nil
        n = n + 1
    end
    return string.format("QOS_DUMP reply, %u entries", n)
end

local function add_multipart(tree, tvb, kind)
    tree:add(f.mp_flags, tvb(HEADER + 2, 2))
    tree:add(f.experimenter, tvb(HEADER + 8, 4))
    tree:add(f.mp_exp_type, tvb(HEADER + 12, 4))
    local exp_type = tvb(HEADER + 12, 4):uint()
    local body = HEADER + 16
    local name = mp_types[exp_type] or exp_type
    local what = kind == T_MP_REQUEST and " request" or " reply"
    if exp_type == MP_DUMP and kind == T_MP_REPLY then
        return add_dump(tree, tvb:len() > body and tvb(body):tvb() or nil)
    end
    if exp_type == MP_DUMP and tvb:len() == body + 8 then
        add_port(tree, tvb(body, 4))
        add_class(tree, tvb(body + 4, 4))
        return name .. what .. ", port " .. port_name(tvb(body, 4):uint())
    end
    if tvb:len() > body then
        tree:add(exp_type == MP_STATUS and f.status or f.data, tvb(body))
    end
    return name .. what
end

-- Of the request in an error's data: what was asked for, as far as it is there.
local function add_refused_request(tree, range)
    local at = tree:add(f.error_request, range)
    local kind, body = range(1, 1):uint(), nil
    if kind == T_QOS then
        body = HEADER
    elseif kind == T_EXPERIMENTER and range(HEADER, 4):uint() == QOSF and
        range(HEADER + 4, 4):uint() == EXP_QOS then
        body = HEADER + 8
    end
    if body and range(2, 2):uint() >= body + 16 then
        add_head(at, range(body, 16):tvb())
    end
end

local function add_error(tree, tvb, data)
    local code = tvb(HEADER + 2, 2):uint()
    local name = codes[code] or ("OFPSFC " .. code)
    tree:add(f.error_type, tvb(HEADER, 2))
    tree:add(f.error_code, tvb(HEADER + 2, 2))
    if data > HEADER + 4 then
        tree:add(f.experimenter, tvb(HEADER + 4, 4))
    end
    if tvb:len() < data + 68 then
        wrong(tree, "too short for a QoS error's data")
        return name
    end
    add_refused_request(tree, tvb(data, 64))
    tree:add(f.errno, tvb(data + 64, 4))
    local text = ""
    if tvb:len() > data + 68 then
        tree:add_packet_field(f.error_text, tvb(data + 68), ENC_UTF_8)
        text = ": " .. tvb(data + 68):string(ENC_UTF_8)
    end
    tree:add_proto_expert_info(refused, name .. text)
    return name .. text
end

local function add_bundle_error(tree, tvb)
    local code = tvb(HEADER + 2, 2):uint()
    local name = "bundle " .. (bundle_codes[code - BUNDLE_CONTROL] or code)
    tree:add(f.error_type, tvb(HEADER, 2))
    tree:add(f.bundle_error_type, tvb(HEADER + 2, 2)):append_text(" (" .. name .. ")")
    tree:add(f.experimenter, tvb(HEADER + 4, 4))
    if tvb:len() > HEADER + 8 then
        tree:add(f.data, tvb(HEADER + 8))
    end
    tree:add_proto_expert_info(refused, name)
    return name
end

-- --------------------------------------------------------------------------------- the messages

local dissect_message

local function add_bundle(tree, tvb, pinfo)
    local exp_type = tvb(HEADER + 4, 4):uint()
    tree:add(f.experimenter, tvb(HEADER, 4))
    tree:add(f.bundle_exp_type, tvb(HEADER + 4, 4))
    if tvb:len() < HEADER + 16 then
        wrong(tree, "too short for a message of bundles")
        return "bundle, malformed"
    end
    local id = tvb(HEADER + 8, 4):uint()
    tree:add(f.bundle_id, tvb(HEADER + 8, 4))
    if exp_type == BUNDLE_CONTROL then
        local kind = tvb(HEADER + 12, 2):uint()
        tree:add(f.bundle_type, tvb(HEADER + 12, 2))
        tree:add(f.bundle_flags, tvb(HEADER + 14, 2))
        return string.format("bundle %u %s", id, bundle_types[kind] or kind)
    end
    tree:add(f.bundle_flags, tvb(HEADER + 14, 2))
    local inner = HEADER + 16
    local length = tvb:len() >= inner + HEADER and tvb(inner + 2, 2):uint() or 0
    if length < HEADER or length > tvb:len() - inner then
        wrong(tree, "the message is longer than its envelope, or shorter than a header")
        return "bundle, malformed"
    end
    local text = string.format("bundle %u ADD", id)
    local within = dissect_message(tvb(inner, length):tvb(), pinfo, tree)
    return within and text .. " (" .. within .. ")" or text
end

local function add_relay(tree, tvb)
    tree:add(f.relay_connected, tvb(0, 1))
    tree:add(f.relay_targets, tvb(1, 1))
    tree:add(f.relay_fail, tvb(2, 1))
    return string.format("RELAY, %u of %u connected", tvb(0, 1):uint(), tvb(1, 1):uint())
end

-- What an experimenter's message is, nil: not ours.
local function experimenter_kind(tvb)
    if tvb:len() < HEADER + 8 then
        return nil
    end
    local who, exp_type = tvb(HEADER, 4):uint(), tvb(HEADER + 4, 4):uint()
    if who == QOSF then
        return function(tree)
            tree:add(f.experimenter, tvb(HEADER, 4))
            tree:add(f.exp_type, tvb(HEADER + 4, 4))
            local rest = tvb:len() > HEADER + 8 and tvb(HEADER + 8):tvb() or nil
            local name = exp_types[exp_type] or ("experimenter type " .. exp_type)
            local row = contents[exp_type]
            if row and (rest and rest:len() or 0) >= row[1] then
                return row[2](tree, rest)
            elseif row then
                wrong(tree, "too short")
                return name .. ", malformed"
            end
            if exp_type == EXP_RELAY and rest and rest:len() == 8 then
                return add_relay(tree, rest)
            end
            if rest then
                tree:add(f.data, rest())
            end
            return name
        end
    end
    if who == ONF and bundle_exp_types[exp_type] then
        return function(tree, pinfo) return add_bundle(tree, tvb, pinfo) end
    end
    return nil
end

local function error_kind(tvb)
    if tvb:len() < HEADER + 8 then
        return nil
    end
    local kind, code = tvb(HEADER, 2):uint(), tvb(HEADER + 2, 2):uint()
    local who = tvb(HEADER + 4, 4):uint()
    if kind == ET_SCHED_FAILED then
        return function(tree) return add_error(tree, tvb, HEADER + 4) end
    end
    if kind == ET_EXPERIMENTER and who == QOSF then
        return function(tree) return add_error(tree, tvb, HEADER + 8) end
    end
    if kind == ET_EXPERIMENTER and who == ONF and bundle_codes[code - BUNDLE_CONTROL] then
        return function(tree) return add_bundle_error(tree, tvb) end
    end
    return nil
end

-- The function that adds a message's content to the tree and returns a line about it; nil where the
-- message is not the extension's.
local function message_kind(tvb)
    if tvb(0, 1):uint() ~= VERSION then
        return nil
    end
    local kind = tvb(1, 1):uint()
    if kind == T_QOS then
        return function(tree)
            return add_request(tree, tvb:len() > HEADER and tvb(HEADER):tvb() or nil)
        end
    elseif kind == T_EXPERIMENTER then
        return experimenter_kind(tvb)
    elseif kind == T_ERROR then
        return error_kind(tvb)
    elseif (kind == T_MP_REQUEST or kind == T_MP_REPLY) and tvb:len() >= HEADER + 16 and
        tvb(HEADER, 2):uint() == MP_EXPERIMENTER and tvb(HEADER + 8, 4):uint() == QOSF then
        return function(tree) return add_multipart(tree, tvb, kind) end
    end
    return nil
end

-- One whole message; -> a line about it, nil where Wireshark's own dissector has had it.
dissect_message = function(tvb, pinfo, tree)
    local content = message_kind(tvb)
    if not content then
        openflow:call(tvb, pinfo, tree)
        return nil
    end
    local at = tree:add(ofqos, tvb())
    at:add(f.version, tvb(0, 1))
    at:add(f.type, tvb(1, 1))
    at:add(f.length, tvb(2, 2))
    at:add(f.xid, tvb(4, 4))
    local text = content(at, pinfo)
    at:append_text(": " .. text)
    return text
end

local function message_length(tvb, pinfo, offset)
    local length = tvb(offset + 2, 2):uint()
    return length < HEADER and HEADER or length
end

local function dissect_pdu(tvb, pinfo, tree)
    local text = dissect_message(tvb, pinfo, tree)
    if text then
        pinfo.cols.protocol = "OpenFlow QoS"
        pinfo.cols.info:append((tostring(pinfo.cols.info) == "" and "" or ", ") .. text)
        pinfo.cols.info:fence()
    end
    return tvb:len()
end

function ofqos.dissector(tvb, pinfo, tree)
    pinfo.cols.info:clear()
    dissect_tcp_pdus(tvb, tree, HEADER, message_length, dissect_pdu)
    return tvb:len()
end

local tcp = DissectorTable.get("tcp.port")
tcp:add(6653, ofqos)
tcp:add(6633, ofqos)
tcp:add_for_decode_as(ofqos)
