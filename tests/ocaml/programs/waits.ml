(* Waits in a system call for a line of input, works, and says how much it has allocated; again and again.
   Says so if a system call was interrupted. *)

let buffer = Bytes.create 1

let rec read_line line =
  match Unix.read Unix.stdin buffer 0 1 with
  | 0 -> None
  | _ when Bytes.get buffer 0 = '\n' -> Some line
  | _ -> read_line (line ^ Bytes.to_string buffer)

let wait_for_input = function
  | "select" ->
      let ready, _, _ = Unix.select [ Unix.stdin ] [] [] (-1.) in
      assert (ready <> [])
  | "sleep" ->
      (* Unix.sleepf starts again by itself. *)
      let started = Unix.gettimeofday () in
      Unix.sleepf 1.5;
      if Unix.gettimeofday () -. started < 1.4 then print_endline "woken up early"
  | "thread" ->
      (* The main thread waits for a lock, another for input. *)
      let thread = Thread.create (fun () -> ignore (Unix.select [ Unix.stdin ] [] [] (-1.))) () in
      Thread.join thread
  | _ -> ()

let rec build n list = if n = 0 then list else build (n - 1) (n :: list)

let work () =
  let before = Gc.minor_words () in
  let total = ref 0 in
  for _ = 1 to 300 do
    total := !total + List.length (build 10_000 [])
  done;
  (!total, Gc.minor_words () -. before)

let rec serve how =
  wait_for_input how;
  match read_line "" with
  | None -> print_endline "end"
  | Some line ->
      let total, words = work () in
      Printf.printf "%s %d %.0f\n%!" line total words;
      serve how

let () =
  print_endline "ready";
  try serve Sys.argv.(1)
  with Unix.Unix_error (error, call, _) ->
    Printf.printf "%s: %s\n" call (Unix.error_message error)
